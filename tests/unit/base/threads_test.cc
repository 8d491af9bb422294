// Locks, budget, pool, buffers, contexts.

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/context.h"
#include "base/memory_budget.h"
#include "base/mutex.h"
#include "base/page_memory.h"
#include "base/rng.h"
#include "base/thread_pool.h"

namespace thermo {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

#ifdef THERMO_CHECK_LOCKS
TEST(MutexDeathTest, OrderIsEnforcedWithBothNames) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Mutex outer(LockRank::kVfs, "outer lock");
  Mutex inner(LockRank::kStore, "inner lock");
  {
    MutexLock first(outer);
    MutexLock second(inner);
  }
  EXPECT_DEATH(
      {
        MutexLock first(inner);
        MutexLock second(outer);
      },
      "'outer lock' .*'inner lock'");
  Mutex twin(LockRank::kVfs, "twin");
  EXPECT_DEATH(
      {
        MutexLock first(outer);
        MutexLock second(twin);
      },
      "'twin'");
}

TEST(Mutex, WaitingReleasesItsRank) {
  Mutex low(LockRank::kVfs, "low");
  Mutex high(LockRank::kLeaf, "high");
  CondVar signal;
  MutexLock lock(low);
  EXPECT_FALSE(signal.wait_until(low, Clock::system().now() + milliseconds(1)));
  MutexLock next(high);  // still held and still in order
}
#endif

TEST(Mutex, TryLockAndUnorderedRelease) {
  Mutex a(LockRank::kVfs, "a");
  Mutex b(LockRank::kStore, "b");
  ASSERT_TRUE(a.try_lock());
  b.lock();
  std::thread other([&] { EXPECT_FALSE(a.try_lock()); });
  other.join();
  a.unlock();
  b.unlock();
  MutexLock again(a);
}

TEST(MemoryBudget, CountsAndGivesBack) {
  MemoryBudget budget(1000);
  {
    auto one = budget.reserve({}, 600);
    ASSERT_TRUE(one);
    EXPECT_EQ(budget.used(), 600U);
    auto part = one->split(100);
    EXPECT_EQ(one->bytes(), 500U);
    EXPECT_EQ(part.bytes(), 100U);
    one->release();
    one->release();
    EXPECT_EQ(budget.used(), 100U);
    MemoryReservation moved = std::move(part);
    EXPECT_EQ(moved.bytes(), 100U);
    moved = *budget.reserve({}, 300);
    EXPECT_EQ(budget.used(), 300U);
  }
  EXPECT_EQ(budget.used(), 0U);
}

TEST(MemoryBudget, KeepsRoomForTheForeground) {
  MemoryBudget budget(1000);
  const auto prefetch = RequestContext{}.at(Priority::kPrefetch).waiting(false);
  const auto foreground = RequestContext{}.waiting(false);
  EXPECT_EQ(budget.available(Priority::kPrefetch), 750U);
  const auto most = budget.reserve(prefetch, 750);
  ASSERT_TRUE(most);
  EXPECT_EQ(budget.reserve(prefetch, 1).error().code(), ErrorCode::kWouldWaitDevice);
  EXPECT_TRUE(budget.reserve(foreground, 250));
  EXPECT_EQ(budget.reserve(foreground, 251).error().code(), ErrorCode::kWouldWaitDevice);
  const auto too_much = budget.reserve(foreground, 1001);
  EXPECT_EQ(too_much.error().code(), ErrorCode::kNoSpace);
  EXPECT_NE(too_much.error().message().find("1001"), std::string::npos);
  EXPECT_EQ(budget.reserve({}, ~std::size_t{0}).error().code(), ErrorCode::kNoSpace);
}

TEST(MemoryBudget, WaitersEndByRoomDeadlineOrStop) {
  MemoryBudget budget(100);
  auto all = budget.reserve({}, 100);
  EXPECT_EQ(budget.reserve(RequestContext::with_timeout(Clock::system(), milliseconds(20)), 1).error().code(),
            ErrorCode::kTimeout);
  std::stop_source stop;
  RequestContext stopped;
  stopped.stop = stop.get_token();
  stop.request_stop();
  EXPECT_EQ(budget.reserve(stopped, 1).error().code(), ErrorCode::kCancelled);
  std::thread giver([&] {
    std::this_thread::sleep_for(milliseconds(20));
    all->release();
  });
  EXPECT_TRUE(budget.reserve({}, 100));
  giver.join();
  EXPECT_EQ(budget.used(), 0U);
}

TEST(MemoryBudget, ADeadlineOfAStandingClockDoesNotSpin) {
  FakeClock clock;
  MemoryBudget budget(100, clock);
  const auto all = budget.reserve({}, 100);
  const auto ctx = RequestContext::with_timeout(clock, seconds(5));
  std::thread waiter([&] { EXPECT_EQ(budget.reserve(ctx, 1).error().code(), ErrorCode::kTimeout); });
  std::this_thread::sleep_for(milliseconds(30));
  clock.advance(seconds(6));
  waiter.join();
}

TEST(MemoryBudget, NeverAboveItsLimitUnderManyThreads) {
  MemoryBudget budget(1000);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Rng rng(t);
      for (int i = 0; i < 300; ++i) {
        const auto share = budget.reserve(RequestContext{}.at(static_cast<Priority>(rng.below(4))), 1 + rng.below(700));
        ASSERT_TRUE(share);
        ASSERT_LE(budget.used(), 1000U);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(budget.used(), 0U);
}

TEST(Buffer, IsAlignedAndHoldsItsShare) {
  MemoryBudget budget(std::size_t{8} << 20);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{5000}, std::size_t{1} << 20}) {
    auto buffer = Buffer::allocate(*budget.reserve({}, size), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 4096, 0U);
    EXPECT_EQ(buffer->bytes().size(), size);
    EXPECT_EQ(budget.used(), size);
    if (size > 0) buffer->data()[size - 1] = std::byte{1};
  }
  EXPECT_EQ(budget.used(), 0U);
}

TEST(PageMemory, KeepsWhatIsInUseNowAndThenAndReturnsTheRest) {
  PageMemory memory;
  std::vector<std::byte*> pages;
  for (int i = 0; i < 8; ++i) {
    pages.push_back(memory.take());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages.back()) % 4096, 0U);
    std::memset(pages.back(), i + 1, PageMemory::kBytes);
  }
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(pages[static_cast<std::size_t>(i)][PageMemory::kBytes - 1], std::byte(i + 1)) << "they overlap";
  EXPECT_EQ(memory.stock().warm, 0U);
  for (auto* page : pages) memory.give_back(page);
  memory.trim();
  EXPECT_EQ(memory.stock().warm, 8U) << "all of it was in use since the last time";
  auto* const last = memory.take();
  EXPECT_EQ(last, pages[7]);
  memory.give_back(last);
  memory.trim();
  EXPECT_EQ(memory.stock().warm, 1U) << "one was enough";
  EXPECT_EQ(memory.stock().cold, 7U);
  for (std::size_t i = 0; i < 8; ++i) pages[i] = memory.take();
  EXPECT_EQ(memory.stock().cold, 0U);
  int empty = 0;
  for (auto* page : pages) empty += static_cast<int>(page[100] == std::byte{0});
  EXPECT_EQ(empty, 7) << "the kernel has taken their memory";
  for (auto* page : pages) memory.give_back(page);
  for (int i = 0; i < 10; ++i) memory.make_way(PageMemory::kBytes / 4);
  EXPECT_EQ(memory.stock().warm, 6U) << "two and a half pages of other memory were taken";
  memory.make_way(100 * PageMemory::kBytes);
  EXPECT_EQ(memory.stock().warm, 0U);
  EXPECT_EQ(memory.stock().cold, 8U);
}

TEST(ThreadPool, RunsTheMostUrgentFirst) {
  ThreadPool pool({"order", 1, 100});
  std::atomic<bool> go{false};
  ASSERT_TRUE(pool.submit(Priority::kForeground, [&] {
    while (!go) std::this_thread::yield();
  }));
  while (pool.queued() > 0) std::this_thread::yield();
  std::string order;
  const std::pair<Priority, char> tasks[] = {{Priority::kScrub, 's'},
                                             {Priority::kPrefetch, 'p'},
                                             {Priority::kForeground, 'f'},
                                             {Priority::kWriteBack, 'w'},
                                             {Priority::kForeground, 'g'}};
  for (const auto& [priority, letter] : tasks) ASSERT_TRUE(pool.submit(priority, [&order, l = letter] { order += l; }));
  go = true;
  pool.shutdown();
  EXPECT_EQ(order, "fgwps");
}

TEST(ThreadPool, IsBounded) {
  ThreadPool pool({"bounded", 1, 2});
  std::atomic<bool> go{false};
  std::atomic<int> ran{0};
  const auto task = [&] {
    while (!go) std::this_thread::yield();
    ++ran;
  };
  ASSERT_TRUE(pool.submit(Priority::kForeground, task));
  while (pool.queued() > 0) std::this_thread::yield();
  ASSERT_TRUE(pool.submit(Priority::kScrub, task));
  ASSERT_TRUE(pool.submit(Priority::kScrub, task));
  const auto refused = pool.submit(Priority::kForeground, task);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kBusy);
  go = true;
  pool.shutdown();
  pool.shutdown();
  EXPECT_EQ(ran, 3) << "what was queued ran";
  EXPECT_EQ(pool.submit(Priority::kForeground, task).error().code(), ErrorCode::kCancelled);
}

TEST(ThreadPool, UsesItsThreadsAndManyWriters) {
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::atomic<int> ran{0};
  {
    ThreadPool pool({"a name that is long", 4, 100'000});
    std::vector<std::thread> writers;
    for (int t = 0; t < 4; ++t) {
      writers.emplace_back([&] {
        for (int i = 0; i < 500; ++i) {
          ASSERT_TRUE(pool.submit(static_cast<Priority>(i % 4), [&] {
            const int now = ++inside;
            int seen = most;
            while (now > seen && !most.compare_exchange_weak(seen, now)) {
            }
            std::this_thread::yield();
            --inside;
            ++ran;
          }));
        }
      });
    }
    for (auto& writer : writers) writer.join();
  }
  EXPECT_EQ(ran, 2000);
  EXPECT_LE(most, 4);
}

// Two tasks that wait for each other need two threads: the second may not queue behind the first while a thread can be started.
TEST(ThreadPool, StartsAThreadPerWaitingTask) {
  for (int run = 0; run < 50; ++run) {
    ThreadPool pool({"pair", 2, 10});
    std::atomic<int> arrived{0};
    const auto meet = [&] {
      ++arrived;
      const auto end = Clock::system().now() + seconds(20);
      while (arrived < 2 && Clock::system().now() < end) std::this_thread::yield();
      EXPECT_EQ(arrived, 2);
    };
    ASSERT_TRUE(pool.submit(Priority::kForeground, meet));
    ASSERT_TRUE(pool.submit(Priority::kForeground, meet));
    pool.shutdown();
  }
}

TEST(RequestContext, EndsByDeadlineOrStop) {
  FakeClock clock;
  const auto ctx = RequestContext::with_timeout(clock, seconds(1));
  EXPECT_NE(ctx.request_id, 0U);
  EXPECT_TRUE(ctx.check(clock));
  clock.advance(seconds(1));
  EXPECT_EQ(ctx.check(clock).error().code(), ErrorCode::kTimeout);
  EXPECT_TRUE(RequestContext{}.check(clock)) << "no deadline";
  std::stop_source stop;
  auto stopped = ctx;
  stopped.stop = stop.get_token();
  stop.request_stop();
  EXPECT_EQ(stopped.check(clock).error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(ctx.at(Priority::kScrub).priority, Priority::kScrub);
  EXPECT_FALSE(ctx.waiting(false).may_wait);
  EXPECT_NE(next_request_id(), next_request_id());
  for (const auto priority : {Priority::kForeground, Priority::kWriteBack, Priority::kPrefetch, Priority::kScrub}) {
    EXPECT_NE(to_string(priority), "unknown");
  }
}

TEST(FakeClock, StandsUntilTold) {
  FakeClock clock(100);
  const auto begin = clock.now();
  EXPECT_EQ(clock.now(), begin);
  clock.advance(seconds(3));
  EXPECT_EQ(clock.now() - begin, seconds(3));
  EXPECT_EQ(clock.wall(), 3'000'000'100);
}

}  // namespace
}  // namespace thermo
