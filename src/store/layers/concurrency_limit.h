#pragma once
// How many requests a store gets at once: AIMD on its throttling, foreground first.

#include <deque>

#include "base/context.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "store/layers/layers.h"

namespace thermo::store {

/// The numbers alone: additive growth, multiplicative cuts. Not thread-safe.
class AimdWindow {
 public:
  /// One burst of SlowDown answers is one message, not many.
  static constexpr Nanos kCutInterval = std::chrono::milliseconds(500);

  explicit AimdWindow(const LimitOptions& options);
  void succeeded();
  /// Whether the window was cut.
  bool throttled(MonoTime now);
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(limit_); }

 private:
  const double min_;
  const double max_;
  double limit_;
  MonoTime next_cut_ = MonoTime::min();
};

/// Thread-safe. Every waiter has a condition variable of its own: a free slot wakes exactly the one that gets it.
class ConcurrencyLimit {
 public:
  enum class Outcome : std::uint8_t { kSuccess, kThrottled, kOther };

  ConcurrencyLimit(const LimitOptions& options, const Clock& clock, metrics::Registry& registry, const std::string& store_id);

  /// Waits for a slot: kTimeout, kCancelled, kWouldWaitStore (may_wait false). Each success must be followed by one release().
  [[nodiscard]] Result<void> acquire(const RequestContext& ctx);
  void release(Outcome outcome);
  [[nodiscard]] std::size_t limit() const;
  [[nodiscard]] std::size_t in_flight() const;

 private:
  struct Waiter {
    CondVar granted_signal;
    bool granted = false;
  };
  void hand_out() REQUIRES(mutex_);

  const Clock& clock_;
  metrics::Gauge& limit_gauge_;
  metrics::Gauge& in_flight_gauge_;
  metrics::Gauge& waiting_gauge_;
  metrics::Counter& throttled_;
  mutable Mutex mutex_{LockRank::kStore, "store limit"};
  AimdWindow window_ GUARDED_BY(mutex_);
  std::size_t in_flight_ GUARDED_BY(mutex_) = 0;
  std::deque<Waiter*> queues_[4] GUARDED_BY(mutex_);
};

}  // namespace thermo::store
