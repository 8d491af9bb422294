#include "store/layers/concurrency_limit.h"

#include <algorithm>

namespace thermo::store {

AimdWindow::AimdWindow(const LimitOptions& options)
    : min_(std::max(1.0, options.min)), max_(std::max(min_, options.max)), limit_(std::clamp(options.initial, min_, max_)) {}

void AimdWindow::succeeded() { limit_ = std::min(max_, limit_ + 1.0 / limit_); }

bool AimdWindow::throttled(MonoTime now) {
  if (now < next_cut_) return false;
  next_cut_ = now + kCutInterval;
  limit_ = std::max(min_, limit_ / 2);
  return true;
}

ConcurrencyLimit::ConcurrencyLimit(const LimitOptions& options, const Clock& clock, metrics::Registry& registry,
                                   const std::string& store_id)
    : clock_(clock),
      limit_gauge_(
          registry.gauge("thermocline_store_limit", "Requests in flight that the store is given at most", {{"store", store_id}})),
      in_flight_gauge_(registry.gauge("thermocline_store_in_flight", "Requests in flight to the store", {{"store", store_id}})),
      waiting_gauge_(registry.gauge("thermocline_store_waiting", "Requests that wait for their turn", {{"store", store_id}})),
      throttled_(registry.counter("thermocline_store_throttled_total", "Answers by which the store asked for fewer requests",
                                  {{"store", store_id}})),
      window_(options) {
  MutexLock lock(mutex_);
  limit_gauge_.set(static_cast<std::int64_t>(window_.size()));
}

Result<void> ConcurrencyLimit::acquire(const RequestContext& ctx) {
  TRY(ctx.check(clock_));
  MutexLock lock(mutex_);
  // Nobody waits while a slot is free (hand_out sees to it), so nobody is overtaken here.
  if (in_flight_ < window_.size()) {
    ++in_flight_;
    in_flight_gauge_.add(1);
    return {};
  }
  if (!ctx.may_wait) return fail(ErrorCode::kWouldWaitStore);
  Waiter waiter;
  auto& queue = queues_[static_cast<std::size_t>(ctx.priority)];
  queue.push_back(&waiter);
  waiting_gauge_.add(1);
  Result<void> outcome;
  while (!waiter.granted) {
    // Real time, whatever the clock is: stop tokens and clocks of tests do not signal the condition variable.
    (void)waiter.granted_signal.wait_until(mutex_, Clock::system().now() + std::chrono::milliseconds(50));
    if (waiter.granted) break;
    outcome = ctx.check(clock_);
    if (outcome) continue;
    queue.erase(std::find(queue.begin(), queue.end(), &waiter));
    break;
  }
  waiting_gauge_.add(-1);
  return outcome;
}

void ConcurrencyLimit::release(Outcome outcome) {
  MutexLock lock(mutex_);
  --in_flight_;
  in_flight_gauge_.add(-1);
  if (outcome == Outcome::kSuccess) window_.succeeded();
  if (outcome == Outcome::kThrottled) {
    throttled_.add();
    window_.throttled(clock_.now());
  }
  limit_gauge_.set(static_cast<std::int64_t>(window_.size()));
  hand_out();
}

void ConcurrencyLimit::hand_out() {
  for (auto& queue : queues_) {
    while (!queue.empty() && in_flight_ < window_.size()) {
      Waiter* const next = queue.front();
      queue.pop_front();
      next->granted = true;
      ++in_flight_;
      in_flight_gauge_.add(1);
      next->granted_signal.notify_one();
    }
  }
}

std::size_t ConcurrencyLimit::limit() const {
  MutexLock lock(mutex_);
  return window_.size();
}

std::size_t ConcurrencyLimit::in_flight() const {
  MutexLock lock(mutex_);
  return in_flight_;
}

}  // namespace thermo::store
