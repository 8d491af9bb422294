#include "store/layers/retry_schedule.h"

#include <gtest/gtest.h>

namespace thermo::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Reason = RetrySchedule::Reason;

constexpr MonoTime kNow{seconds(1000)};
constexpr RetrySchedule::Failure kFailed{RetryClass::kRetry, Nanos(0), false};

class RetryScheduleTest : public ::testing::Test {
 protected:
  RetrySchedule::Decision fail_once(RetrySchedule& schedule, RetrySchedule::Failure failure = kFailed,
                                    MonoTime deadline = MonoTime::max()) {
    return schedule.failed(failure, kNow, deadline, budget_, rng_);
  }
  RetryOptions options_;
  RetryBudget budget_{1e9, 0};
  Rng rng_{1};
};

TEST_F(RetryScheduleTest, EndsByAttempts) {
  RetrySchedule schedule(options_);
  for (int i = 1; i < options_.max_attempts; ++i) EXPECT_TRUE(fail_once(schedule).retry()) << i;
  EXPECT_EQ(fail_once(schedule).reason, Reason::kAttempts);
  EXPECT_EQ(schedule.failures(), options_.max_attempts);
}

TEST_F(RetryScheduleTest, ObeysTheClassOfTheError) {
  RetrySchedule schedule(options_);
  EXPECT_EQ(fail_once(schedule, {RetryClass::kNever}).reason, Reason::kNotRetryable);
  EXPECT_TRUE(fail_once(schedule, {RetryClass::kRefresh}).retry());
  EXPECT_TRUE(fail_once(schedule, {RetryClass::kThrottle}).retry());
  EXPECT_EQ(fail_once(schedule, {RetryClass::kRefresh}).reason, Reason::kNotRetryable) << "one refresh is enough";
}

// Full jitter: uniform below a ceiling that doubles up to max_delay.
TEST_F(RetryScheduleTest, JitterFillsTheWindowAndDoubles) {
  options_.max_attempts = 100;
  options_.base_delay = milliseconds(100);
  options_.max_delay = milliseconds(1000);
  for (int failures = 1; failures <= 8; ++failures) {
    const Nanos ceiling = std::min<Nanos>(milliseconds(100) * (1 << (failures - 1)), milliseconds(1000));
    Nanos low = Nanos::max();
    Nanos high{0};
    for (int run = 0; run < 400; ++run) {
      RetrySchedule schedule(options_);
      RetrySchedule::Decision last{};
      for (int i = 0; i < failures; ++i) last = fail_once(schedule);
      ASSERT_TRUE(last.retry());
      low = std::min(low, last.wait);
      high = std::max(high, last.wait);
    }
    EXPECT_LE(high, ceiling) << failures;
    EXPECT_GT(high, ceiling * 9 / 10) << failures;
    EXPECT_LT(low, ceiling / 10) << failures;
  }
}

TEST_F(RetryScheduleTest, RetryAfterIsTheLeastPause) {
  RetrySchedule schedule(options_);
  const auto decision = fail_once(schedule, {RetryClass::kThrottle, seconds(2)});
  EXPECT_TRUE(decision.retry());
  EXPECT_GE(decision.wait, seconds(2));
  EXPECT_LE(decision.wait, seconds(2) + options_.base_delay);
  const auto absurd = fail_once(schedule, {RetryClass::kThrottle, std::chrono::hours(5)});
  EXPECT_LE(absurd.wait, RetrySchedule::kMaxRetryAfter + options_.base_delay);
}

TEST_F(RetryScheduleTest, RetryAfterBeyondTheDeadlineGivesUpAtOnce) {
  RetrySchedule schedule(options_);
  EXPECT_EQ(fail_once(schedule, {RetryClass::kThrottle, seconds(2)}, kNow + seconds(1)).reason, Reason::kDeadline);
  EXPECT_EQ(fail_once(schedule, kFailed, kNow).reason, Reason::kDeadline);
  EXPECT_EQ(budget_.tokens(), 1e9) << "a retry that is not made costs nothing";
}

TEST_F(RetryScheduleTest, BudgetIsSharedAndEarnedBack) {
  RetryBudget budget(3, 0.5);
  options_.max_attempts = 100;
  RetrySchedule one(options_);
  RetrySchedule two(options_);
  EXPECT_TRUE(one.failed(kFailed, kNow, MonoTime::max(), budget, rng_).retry());
  EXPECT_TRUE(two.failed(kFailed, kNow, MonoTime::max(), budget, rng_).retry());
  EXPECT_TRUE(one.failed(kFailed, kNow, MonoTime::max(), budget, rng_).retry());
  EXPECT_EQ(two.failed(kFailed, kNow, MonoTime::max(), budget, rng_).reason, Reason::kBudget);
  budget.earn();
  EXPECT_EQ(two.failed(kFailed, kNow, MonoTime::max(), budget, rng_).reason, Reason::kBudget);
  budget.earn();
  EXPECT_TRUE(two.failed(kFailed, kNow, MonoTime::max(), budget, rng_).retry());
  for (int i = 0; i < 100; ++i) budget.earn();
  EXPECT_EQ(budget.tokens(), 3) << "never above the burst";
}

TEST_F(RetryScheduleTest, ProgressStartsTheCountAgain) {
  RetrySchedule schedule(options_);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(fail_once(schedule, {RetryClass::kRetry, Nanos(0), true}).retry());
  for (int i = 1; i < options_.max_attempts; ++i) EXPECT_TRUE(fail_once(schedule).retry());
  EXPECT_EQ(fail_once(schedule).reason, Reason::kAttempts);
}

TEST_F(RetryScheduleTest, AttemptDeadlineIsAChild) {
  const RetrySchedule schedule(options_);
  EXPECT_EQ(schedule.attempt_deadline(kNow, kNow + seconds(1)), kNow + seconds(1));
  EXPECT_EQ(schedule.attempt_deadline(kNow, MonoTime::max()), kNow + options_.attempt_timeout);
  options_.attempt_timeout = Nanos(0);
  EXPECT_EQ(RetrySchedule(options_).attempt_deadline(kNow, MonoTime::max()), MonoTime::max());
}

// Any history ends, never waits past its deadline, and never makes more attempts than it may.
TEST_F(RetryScheduleTest, SeededHistoriesEndInTime) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Rng rng(seed);
    RetryOptions options;
    options.max_attempts = static_cast<int>(1 + rng.below(8));
    options.base_delay = milliseconds(rng.below(200));
    options.max_delay = milliseconds(rng.below(3000));
    RetryBudget budget(static_cast<double>(rng.below(20)), 0.2);
    RetrySchedule schedule(options);
    MonoTime now = kNow;
    const MonoTime deadline = rng.chance(0.5) ? MonoTime::max() : now + milliseconds(rng.below(10'000));
    int retries = 0;
    while (true) {
      RetrySchedule::Failure failure{rng.chance(0.8) ? RetryClass::kRetry : RetryClass::kThrottle};
      if (rng.chance(0.2)) failure.retry_after = milliseconds(rng.below(40'000));
      const auto decision = schedule.failed(failure, now, deadline, budget, rng);
      if (!decision.retry()) break;
      ASSERT_GE(decision.wait, Nanos(0));
      ASSERT_LT(now + decision.wait, deadline) << "seed " << seed;
      ASSERT_LE(decision.wait, std::max<Nanos>(options.max_delay, RetrySchedule::kMaxRetryAfter + options.base_delay));
      now += decision.wait + milliseconds(rng.below(50));
      ASSERT_LT(++retries, options.max_attempts) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace thermo::store
