#pragma once
// Private to s3sim: bandwidth limits and interruptible sleep.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <set>

#include "base/clock.h"
#include "base/mutex.h"

namespace thermo::s3sim {

/// Schedule of one stream of bytes: when may the bytes of a step have arrived? Measures from the schedule, not from when a step
/// was done, so sleeping too long is made good and the rate is exact; but no more than kSlack of silence is ever made good. Not
/// thread-safe.
class Pacer {
 public:
  static constexpr Nanos kSlack = std::chrono::milliseconds(50);
  /// A new body begins: idle time before it earns nothing.
  void begin(MonoTime now) { next_ = std::max(next_, now); }
  /// Books `bytes` at `rate` bytes per second (> 0) and says until when to wait before they are sent.
  [[nodiscard]] MonoTime book(MonoTime now, std::uint64_t bytes, std::uint64_t rate) {
    next_ = std::max(next_, now - kSlack) + std::chrono::duration_cast<MonoTime::duration>(std::chrono::duration<double>(
                                                static_cast<double>(bytes) / static_cast<double>(rate)));
    return next_;
  }
  /// Bytes per step: large enough to sleep seldom, small enough to flow evenly (about 2.5 ms, 16 to 256 KiB).
  [[nodiscard]] static std::uint64_t step(std::uint64_t rate) {
    return std::clamp<std::uint64_t>(rate / 400, 16 * 1024, 256 * 1024);
  }

 private:
  MonoTime next_{};
};

/// The same for all connections together. Thread-safe.
class SharedPacer {
 public:
  [[nodiscard]] MonoTime book(MonoTime now, std::uint64_t bytes, std::uint64_t rate) {
    MutexLock lock(mutex_);
    return pacer_.book(now, bytes, rate);
  }

 private:
  Mutex mutex_{LockRank::kLeaf, "s3sim total bandwidth"};
  Pacer pacer_ GUARDED_BY(mutex_);
};

/// Ends what waits when the server stops. Thread-safe.
class Stopper {
 public:
  /// False: stopped meanwhile.
  bool sleep_until(MonoTime until);
  [[nodiscard]] bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  void stop();
  /// Sockets on which somebody may be blocked; stop() shuts them down. Removed before they are closed.
  void watch(int fd);
  void forget(int fd);

 private:
  std::atomic<bool> stopped_{false};
  Mutex mutex_{LockRank::kLeaf, "s3sim stop"};
  CondVar changed_;
  std::set<int> fds_ GUARDED_BY(mutex_);
};

}  // namespace thermo::s3sim
