#include <atomic>
#include <thread>

#include "store/layers/concurrency_limit.h"
#include "store/layers/layers.h"
#include "store/memory/memory_store.h"
#include "unit/store/layers/scripted_store.h"
#include "unit/store/store_testing.h"

namespace thermo::store {
namespace {

using namespace testing;  // NOLINT: test helpers
using std::chrono::milliseconds;
using Outcome = ConcurrencyLimit::Outcome;

LimitOptions fixed(double n) { return {n, n, n}; }

TEST(AimdWindow, HalvesOncePerBurstAndGrowsByOnePerWindow) {
  AimdWindow window({64, 2, 66});
  MonoTime now{};
  EXPECT_TRUE(window.throttled(now));
  EXPECT_EQ(window.size(), 32U);
  EXPECT_FALSE(window.throttled(now + milliseconds(499))) << "the same burst";
  EXPECT_EQ(window.size(), 32U);
  for (int i = 0; i < 34; ++i) window.succeeded();
  EXPECT_EQ(window.size(), 33U);
  for (int i = 1; i < 20; ++i) EXPECT_TRUE(window.throttled(now + milliseconds(500) * i));
  EXPECT_EQ(window.size(), 2U);
  for (int i = 0; i < 100'000; ++i) window.succeeded();
  EXPECT_EQ(window.size(), 66U);
}

TEST(AimdWindow, OddOptionsStillLetOneThrough) {
  EXPECT_EQ(AimdWindow({0, 0, 0}).size(), 1U);
  EXPECT_EQ(AimdWindow({500, 2, 10}).size(), 10U);
  EXPECT_EQ(AimdWindow({1, 5, 3}).size(), 5U);
}

TEST(ConcurrencyLimit, ServesTheMostUrgentFirstAndEqualOnesInOrder) {
  metrics::Registry registry;
  ConcurrencyLimit limit(fixed(1), Clock::system(), registry, "t");
  ASSERT_TRUE(limit.acquire({}));
  Mutex mutex(LockRank::kLeaf, "order");
  std::vector<std::string> order;
  std::vector<std::thread> threads;
  const std::vector<std::pair<Priority, std::string>> arrivals = {
      {Priority::kScrub, "scrub"},     {Priority::kPrefetch, "prefetch 1"}, {Priority::kPrefetch, "prefetch 2"},
      {Priority::kForeground, "fg 1"}, {Priority::kWriteBack, "wb"},        {Priority::kForeground, "fg 2"}};
  std::int64_t waiting = 0;
  for (const auto& [priority, name] : arrivals) {
    threads.emplace_back([&, p = priority, n = name] {
      EXPECT_TRUE(limit.acquire(RequestContext{}.at(p)));
      {
        MutexLock lock(mutex);
        order.push_back(n);
      }
      limit.release(Outcome::kOther);
    });
    ++waiting;
    while (registry.gauge("thermocline_store_waiting", "", {{"store", "t"}}).value() < waiting)
      std::this_thread::sleep_for(milliseconds(1));
  }
  limit.release(Outcome::kOther);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<std::string>{"fg 1", "fg 2", "wb", "prefetch 1", "prefetch 2", "scrub"}));
  EXPECT_EQ(limit.in_flight(), 0U);
}

TEST(ConcurrencyLimit, WaitersKeepTheirDeadlineStopAndHurry) {
  metrics::Registry registry;
  ConcurrencyLimit limit(fixed(1), Clock::system(), registry, "t");
  ASSERT_TRUE(limit.acquire({}));
  EXPECT_EQ(code_of(limit.acquire(RequestContext::with_timeout(Clock::system(), milliseconds(30)))), ErrorCode::kTimeout);
  EXPECT_EQ(code_of(limit.acquire(RequestContext{}.waiting(false))), ErrorCode::kWouldWaitStore);
  std::stop_source stop;
  RequestContext ctx;
  ctx.stop = stop.get_token();
  std::thread stopper([&] { stop.request_stop(); });
  EXPECT_EQ(code_of(limit.acquire(ctx)), ErrorCode::kCancelled);
  stopper.join();
  limit.release(Outcome::kOther);
  EXPECT_EQ(limit.in_flight(), 0U) << "those who left hold nothing";
  EXPECT_TRUE(limit.acquire(RequestContext{}.waiting(false)));
  for (const auto& [name, value] : registry.snapshot()) {
    if (name.starts_with("thermocline_store_waiting")) {
      EXPECT_EQ(value, 0);
    }
  }
}

TEST(ConcurrencyLimit, NeverMoreThanTheLimitUnderManyThreads) {
  metrics::Registry registry;
  ConcurrencyLimit limit({4, 2, 8}, Clock::system(), registry, "t");
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      Rng rng(static_cast<std::uint64_t>(t));
      for (int i = 0; i < 200; ++i) {
        const auto ctx = RequestContext::with_timeout(Clock::system(), std::chrono::microseconds(rng.below(3000)))
                             .at(static_cast<Priority>(rng.below(4)));
        if (!limit.acquire(ctx)) continue;
        const int now = ++inside;
        int seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        if (rng.chance(0.2)) std::this_thread::yield();
        --inside;
        limit.release(rng.chance(0.05) ? Outcome::kThrottled : Outcome::kSuccess);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LE(most, 8);
  EXPECT_EQ(limit.in_flight(), 0U);
}

TEST(LimitLayer, ThrottlingHalvesAndShowsInTheGauge) {
  FakeClock clock;
  metrics::Registry registry;
  const auto scripted = std::make_shared<ScriptedStore>(make_memory_store("t"));
  const auto store = with_limit(scripted, {64, 2, 256}, clock, registry);
  const auto gauge = [&] { return registry.gauge("thermocline_store_limit", "", {{"store", "memory:///t"}}).value(); };
  EXPECT_EQ(gauge(), 64);
  scripted->script = {{Error(ErrorCode::kThrottled)}, {Error(ErrorCode::kThrottled)}, {Error(ErrorCode::kUnavailable)}};
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(store->head({}, "k"));
  EXPECT_EQ(gauge(), 32);
  EXPECT_EQ(registry.snapshot().at("thermocline_store_throttled_total{store=\"memory:///t\"}"), 2);
  EXPECT_EQ(registry.snapshot().at("thermocline_store_in_flight{store=\"memory:///t\"}"), 0);
}

}  // namespace
}  // namespace thermo::store
