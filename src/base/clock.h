#pragma once
// Time comes only from a Clock, so that tests own it.

#include <chrono>
#include <cstdint>

namespace thermo {

using Nanos = std::chrono::nanoseconds;
using Millis = std::chrono::milliseconds;
/// Monotonic time: deadlines, intervals.
using MonoTime = std::chrono::steady_clock::time_point;
/// Wall-clock time: what is stored, signed and shown. Nanoseconds since the Unix epoch.
using WallNanos = std::int64_t;

/// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual MonoTime now() const = 0;
  [[nodiscard]] virtual WallNanos wall() const = 0;
  /// The process's real clock; lives for ever.
  [[nodiscard]] static const Clock& system();
};

/// Stands still until told otherwise. Thread-safe.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(WallNanos wall = 1'700'000'000'000'000'000) : wall_(wall) {}
  [[nodiscard]] MonoTime now() const override;
  [[nodiscard]] WallNanos wall() const override;
  void advance(Nanos by);
  /// Sets the wall clock on or back; monotonic time stays.
  void step_wall(Nanos by);

 private:
  // Used through relaxed atomics: readers need no ordering with other data.
  mutable std::int64_t advanced_ = 0;
  mutable WallNanos wall_;
};

}  // namespace thermo
