#include "base/clock.h"

#include <atomic>

namespace thermo {
namespace {

class SystemClock final : public Clock {
 public:
  [[nodiscard]] MonoTime now() const override { return std::chrono::steady_clock::now(); }
  [[nodiscard]] WallNanos wall() const override {
    return std::chrono::duration_cast<Nanos>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
};

}  // namespace

const Clock& Clock::system() {
  static const SystemClock clock;
  return clock;
}

MonoTime FakeClock::now() const { return MonoTime(Nanos(std::atomic_ref(advanced_).load(std::memory_order_relaxed))); }

WallNanos FakeClock::wall() const {
  return std::atomic_ref(wall_).load(std::memory_order_relaxed) + std::atomic_ref(advanced_).load(std::memory_order_relaxed);
}

void FakeClock::advance(Nanos by) { std::atomic_ref(advanced_).fetch_add(by.count(), std::memory_order_relaxed); }

void FakeClock::step_wall(Nanos by) { std::atomic_ref(wall_).fetch_add(by.count(), std::memory_order_relaxed); }

}  // namespace thermo
