#include "store/layers/retry_schedule.h"

#include <algorithm>

namespace thermo::store {
namespace {

Nanos jitter(Nanos ceiling, Rng& rng) {
  return ceiling.count() <= 0 ? Nanos(0)
                              : Nanos(static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(ceiling.count()) + 1)));
}

}  // namespace

RetrySchedule::Decision RetrySchedule::failed(const Failure& failure, MonoTime now, MonoTime deadline, RetryBudget& budget,
                                              Rng& rng) {
  if (failure.progressed) failures_ = 0;
  else ++failures_;
  if (failure.retry_class == RetryClass::kNever) return {Reason::kNotRetryable};
  if (failure.retry_class == RetryClass::kRefresh && refreshed_) return {Reason::kNotRetryable};
  refreshed_ = refreshed_ || failure.retry_class == RetryClass::kRefresh;
  if (failures_ >= options_.max_attempts) return {Reason::kAttempts};

  const Nanos left = deadline == MonoTime::max() ? Nanos::max() : Nanos(deadline - now);
  const Nanos asked = std::min(failure.retry_after, kMaxRetryAfter);
  if (left <= Nanos(0) || asked >= left) return {Reason::kDeadline};
  if (!budget.spend()) return {Reason::kBudget};

  // Full jitter: a crowd that failed together does not come back together.
  Nanos ceiling = options_.base_delay;
  for (int i = 1; i < failures_ && ceiling < options_.max_delay; ++i) ceiling *= 2;
  Nanos wait = jitter(std::min(ceiling, options_.max_delay), rng);
  if (asked > Nanos(0)) wait = asked + jitter(options_.base_delay, rng);
  if (wait >= left) wait = std::max(asked, left / 2);  // time for one more attempt must remain
  return {Reason::kRetry, wait};
}

MonoTime RetrySchedule::attempt_deadline(MonoTime now, MonoTime deadline) const {
  if (options_.attempt_timeout <= Nanos(0) || options_.attempt_timeout >= MonoTime::max() - now) return deadline;
  return std::min(deadline, now + options_.attempt_timeout);
}

std::string_view to_string(RetrySchedule::Reason reason) {
  switch (reason) {
    case RetrySchedule::Reason::kRetry: return "trying again";
    case RetrySchedule::Reason::kNotRetryable: return "trying again cannot help";
    case RetrySchedule::Reason::kAttempts: return "no attempts left";
    case RetrySchedule::Reason::kBudget: return "the store's retry budget is used up";
    case RetrySchedule::Reason::kDeadline: return "no time left";
  }
  return "unknown";
}

}  // namespace thermo::store
