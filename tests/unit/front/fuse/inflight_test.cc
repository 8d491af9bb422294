#include "front/fuse/inflight.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/rng.h"

namespace thermo::fuse {
namespace {

const MonoTime kFar = MonoTime::max();

TEST(InFlight, AnInterruptStopsItsRequestOnly) {
  InFlight table;
  const auto a = table.add(2, 15, 3, kFar), b = table.add(4, 15, 3, kFar);
  table.interrupt(2);
  EXPECT_TRUE(a->stop.stop_requested());
  EXPECT_FALSE(b->stop.stop_requested());
  table.remove(2);
  table.remove(4);
  EXPECT_EQ(table.size(), 0u);
}

TEST(InFlight, AnInterruptThatWasReadFirstIsKept) {
  InFlight table;
  table.interrupt(6);
  EXPECT_TRUE(table.add(6, 1, 3, kFar)->stop.stop_requested());
  table.remove(6);
  EXPECT_FALSE(table.add(6, 1, 3, kFar)->stop.stop_requested());  // spent
  table.remove(6);
  for (std::uint64_t unique = 100; unique < 10'000; unique += 2) table.interrupt(unique);  // of requests answered long ago
  table.interrupt(8);
  EXPECT_TRUE(table.add(8, 1, 3, kFar)->stop.stop_requested());
  EXPECT_FALSE(table.add(100, 1, 3, kFar)->stop.stop_requested());  // overwritten: its deadline ends it
}

TEST(InFlight, ExpiredRequestsAreClaimedOnce) {
  InFlight table;
  const MonoTime now{std::chrono::seconds(100)};
  const auto late = table.add(2, 15, 3, now - std::chrono::seconds(1));
  const auto answered = table.add(4, 15, 3, now - std::chrono::seconds(1));
  const auto early = table.add(6, 15, 3, now + std::chrono::seconds(1));
  EXPECT_TRUE(answered->claim());
  const auto expired = table.take_expired(now);
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0], late);
  EXPECT_TRUE(late->stop.stop_requested());
  EXPECT_FALSE(late->claim());
  EXPECT_TRUE(table.take_expired(now).empty());
  EXPECT_FALSE(early->stop.stop_requested());
}

TEST(InFlight, ClosingStopsAllAndTheOnesToCome) {
  InFlight table;
  const auto before = table.add(2, 15, 3, kFar);
  EXPECT_FALSE(table.closed());
  table.close();
  EXPECT_TRUE(before->stop.stop_requested());
  EXPECT_TRUE(table.add(4, 15, 3, kFar)->stop.stop_requested());
  EXPECT_TRUE(table.closed());
}

TEST(InFlight, WaitsForTheLastTask) {
  InFlight table;
  (void)table.add(2, 15, 3, kFar);
  std::atomic<bool> removed{false};
  std::thread task([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    removed = true;
    table.remove(2);
  });
  table.wait_empty();
  EXPECT_TRUE(removed);
  task.join();
}

TEST(InFlight, EveryRequestIsAnsweredByExactlyOneSide) {
  InFlight table;
  std::atomic<int> answered{0}, expired{0};
  constexpr int kRequests = 4000;
  std::atomic<bool> done{false};
  std::thread watchdog([&] {
    while (!done) expired += static_cast<int>(table.take_expired(MonoTime{std::chrono::seconds(50)}).size());
  });
  std::vector<std::thread> workers;
  for (int t = 0; t < 4; ++t) {
    workers.emplace_back([&, t] {
      Rng rng(static_cast<std::uint64_t>(t) + 1);
      for (int i = 0; i < kRequests; ++i) {
        const auto unique = static_cast<std::uint64_t>(t * kRequests + i + 1) * 2;
        if (rng.chance(0.2)) table.interrupt(unique);
        const auto pending = table.add(unique, 1, 3, MonoTime{std::chrono::seconds(rng.chance(0.5) ? 10 : 100)});
        if (rng.chance(0.2)) table.interrupt(unique);
        if (rng.chance(0.3)) std::this_thread::yield();
        if (pending->claim()) ++answered;
        table.remove(unique);
      }
    });
  }
  for (auto& worker : workers) worker.join();
  done = true;
  watchdog.join();
  EXPECT_EQ(answered + expired, 4 * kRequests);
  EXPECT_EQ(table.size(), 0u);
}

}  // namespace
}  // namespace thermo::fuse
