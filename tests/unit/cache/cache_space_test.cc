#include <atomic>

#include "cache_fixture.h"

namespace thermo::cache::testing {
namespace {

using CacheSpaceTest = CacheTest;

/// Looks at the charge all the time. (Walking the folder is no moment: a file counted, then evicted, and its successor counted
/// too.)
class Watcher {
 public:
  Watcher(Cache& cache, std::uint64_t limit)
      : thread_([this, &cache, limit] {
          while (!stop_) {
            const auto used = cache.status().used_bytes;
            if (used > limit) over_charge_ = std::max(over_charge_.load(), used - limit);
            ++samples_;
            std::this_thread::sleep_for(std::chrono::microseconds(100));
          }
        }) {}
  ~Watcher() {
    stop_ = true;
    thread_.join();
  }
  std::uint64_t over_charge() const { return over_charge_; }
  int samples() const { return samples_; }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> over_charge_{0};
  std::atomic<int> samples_{0};
  std::thread thread_;
};

TEST_F(CacheSpaceTest, TheLimitHoldsAtEveryMoment) {
  constexpr std::uint64_t kLimit = 12 * kMiB;
  open(kLimit);
  std::vector<ObjectRef> refs;
  for (std::uint64_t i = 0; i < 24; ++i)
    refs.push_back(source_->add("o" + std::to_string(i), i % 5 == 0 ? 40'000 : (i % 4 + 1) * kMiB - 77, i));
  {
    const Watcher watcher(*cache_, kLimit);
    std::vector<std::thread> readers;
    for (std::uint64_t t = 0; t < 6; ++t) {
      readers.emplace_back([&, t] {
        Rng rng(t);
        for (int i = 0; i < 40; ++i) {
          const auto object = open_object(refs[rng.below(refs.size())]);
          expect_read_all(object, 256 * 1024);
        }
      });
    }
    for (auto& reader : readers) reader.join();
    EXPECT_EQ(watcher.over_charge(), 0u);
    EXPECT_GT(watcher.samples(), 10);
  }
  EXPECT_GT(metric("thermocline_cache_evictions_total"), 0);
  ASSERT_TRUE(eventually([&] { return cache_->status().used_bytes == disk_usage(); }))
      << cache_->status().used_bytes << " charged, " << disk_usage() << " on disk";
  EXPECT_EQ(metric("thermocline_cache_used_bytes"), static_cast<std::int64_t>(disk_usage()));
}

TEST_F(CacheSpaceTest, SixteenReadersOfAnObjectLargerThanTheTier) {
  constexpr std::uint64_t kLimit = 5 * kMiB;
  open(kLimit);
  const auto ref = source_->add("large", 16 * kMiB + 333, 1);
  std::vector<std::thread> readers;
  for (std::uint64_t t = 0; t < 16; ++t) {
    readers.emplace_back([&, t] {
      const auto object = open_object(ref);
      expect_read_all(object, t % 2 == 0 ? 128 * 1024 : kMiB);
    });
  }
  for (auto& reader : readers) reader.join();
  EXPECT_LE(cache_->status().used_bytes, kLimit);
  EXPECT_LE(disk_usage(), kLimit);
  EXPECT_GT(metric("thermocline_cache_bypass_pages_total"), 0);
}

TEST_F(CacheSpaceTest, WhatDoesNotFitIsHeldForTheReaderInSmallSteps) {
  open(64 * 1024);
  const auto ref = source_->add("stream", 4 * kMiB, 2);
  const auto object = open_object(ref);
  expect_read_all(object, 64 * 1024);
  EXPECT_EQ(source_->fetches(), 4u);  // a page each, not one per step
  EXPECT_GT(memory_->used(), 0u);
  clock_.advance(std::chrono::seconds(11));
  EXPECT_TRUE(eventually([&] { return memory_->used() == 0; }));
  expect_read_all(object, kMiB);
  EXPECT_EQ(cache_->status().objects, 0u);
}

TEST_F(CacheSpaceTest, HeldPagesMakeRoomWhenMemoryIsNeeded) {
  set_memory(8 * kMiB);
  open(64 * 1024);
  const auto object = open_object(source_->add("stream", 32 * kMiB, 2));
  expect_read_all(object, 512 * 1024);
  EXPECT_EQ(source_->fetches(), 32u);
  EXPECT_LE(memory_->used(), 8 * kMiB);
}

TEST_F(CacheSpaceTest, OldestGoesFirst) {
  open(5 * kMiB);
  const auto a = source_->add("a", 2 * kMiB, 1);
  const auto b = source_->add("b", 2 * kMiB, 2);
  const auto c = source_->add("c", 2 * kMiB, 3);
  fill_all(open_object(a));
  fill_all(open_object(b));
  expect_read_all(open_object(a));  // a hit does not save it: first in, first out
  fill_all(open_object(c));
  EXPECT_EQ(cache_->residency(ctx(), a)->resident, 0u);
  EXPECT_EQ(cache_->residency(ctx(), b)->resident, b.size);
  EXPECT_EQ(cache_->residency(ctx(), c)->resident, c.size);
  EXPECT_FALSE(fs::exists(object_file(a)));
  EXPECT_FALSE(fs::exists(sidecar_file(a)));
  EXPECT_EQ(metric("thermocline_cache_evictions_total"), 1);
  EXPECT_GE(metric("thermocline_cache_evicted_bytes_total"), static_cast<std::int64_t>(2 * kMiB));
}

TEST_F(CacheSpaceTest, OpenHandlesSurviveEvictionAndFree) {
  open(5 * kMiB);
  const auto a = source_->add("a", 2 * kMiB, 1);
  const auto held = open_object(a);
  fill_all(held);
  fill_all(open_object(source_->add("b", 2 * kMiB, 2)));
  fill_all(open_object(source_->add("c", 2 * kMiB, 3)));
  EXPECT_EQ(held->residency().resident, 0u);
  for (int round = 0; round < 3; ++round) {  // read, evict, read: three times equal
    expect_read_all(held, 100'000);
    settle(held);
    EXPECT_EQ(held->residency().resident, a.size);
    const auto freed = cache_->free(a.version);
    ASSERT_TRUE(freed);
    EXPECT_GE(*freed, a.size);
    EXPECT_EQ(held->residency().resident, 0u);
    EXPECT_FALSE(fs::exists(object_file(a)));
  }
  EXPECT_EQ(cache_->free(a.version).value(), 0u);
  EXPECT_EQ(cache_->free(make_ref("unknown", 5).version).value(), 0u);
}

TEST_F(CacheSpaceTest, FreeInTheMiddleOfAFill) {
  open();
  const auto ref = source_->add("mid", 8 * kMiB, 4);
  const auto object = open_object(ref);
  source_->close_gate(3 * kMiB + 100);
  (void)object->prefetch(ctx(Priority::kPrefetch), {0, 8 * kMiB});
  ASSERT_TRUE(eventually([&] { return object->residency().resident == 3 * kMiB; }));
  ASSERT_TRUE(cache_->free(ref.version));
  EXPECT_EQ(object->residency().resident, 0u);
  source_->open_gate();
  expect_read_all(object);
  clock_.advance(std::chrono::seconds(11));
  settle(object);
  expect_read_all(object);
  settle(object);
  EXPECT_TRUE(eventually([&] { return cache_->status().used_bytes == disk_usage(); }))
      << cache_->status().used_bytes << " charged, " << disk_usage() << " on disk";
}

TEST_F(CacheSpaceTest, ALoweredLimitIsReached) {
  open(20 * kMiB);
  for (std::uint64_t i = 0; i < 6; ++i) fill_all(open_object(source_->add("o" + std::to_string(i), 3 * kMiB - 100'000, i)));
  EXPECT_EQ(cache_->status().objects, 6u);
  cache_->set_limit(7 * kMiB);
  EXPECT_LE(cache_->status().used_bytes, 7 * kMiB);
  EXPECT_LE(disk_usage(), 7 * kMiB);
  EXPECT_EQ(cache_->status().objects, 2u);
  EXPECT_EQ(metric("thermocline_cache_limit_bytes"), static_cast<std::int64_t>(7 * kMiB));
}

TEST_F(CacheSpaceTest, ANewVersionOfAKeyIsAnotherObject) {
  open();
  const auto old_version = source_->add("f", 3 * kMiB, 1, "\"v1\"");
  const auto new_version = source_->add("f", 2 * kMiB + 1, 2, "\"v2\"");
  const auto old_handle = open_object(old_version);
  fill_all(old_handle);
  const auto new_handle = open_object(new_version);
  EXPECT_EQ(new_handle->residency().resident, 0u);
  fill_all(new_handle);
  expect_read_all(old_handle);
  EXPECT_EQ(new_handle->residency().size, 2 * kMiB + 1);
  EXPECT_EQ(new_handle->residency().resident, 2 * kMiB + 1);
}

TEST_F(CacheSpaceTest, NothingUsedAtStartNeverNegativeNothingLeft) {
  open(8 * kMiB);
  EXPECT_EQ(cache_->status().used_bytes, 0u);
  EXPECT_EQ(cache_->status().objects, 0u);
  std::vector<ObjectRef> refs;
  for (std::uint64_t i = 0; i < 30; ++i) {
    refs.push_back(source_->add("n" + std::to_string(i), 1000 + i * 111'111, i));
    fill_all(open_object(refs.back()));
    EXPECT_GE(metric("thermocline_cache_used_bytes"), 0);
    EXPECT_TRUE(eventually([&] { return cache_->status().used_bytes == disk_usage(); }));
  }
  for (const auto& ref : refs) (void)cache_->free(ref.version);
  EXPECT_EQ(cache_->status().used_bytes, 0u);
  EXPECT_EQ(disk_usage(), 0u);
}

TEST_F(CacheSpaceTest, ManySmallObjects) {
  open(2 * kMiB);
  std::vector<ObjectRef> refs;
  for (std::uint64_t i = 0; i < 1500; ++i) refs.push_back(source_->add("s" + std::to_string(i), 100 + i * 7, i));
  for (const auto& ref : refs) expect_read(open_object(ref), 0, ref.size);
  EXPECT_LE(cache_->status().used_bytes, 2 * kMiB);
  EXPECT_GT(cache_->status().objects, 100u);
  // The youngest are hits.
  ASSERT_TRUE(eventually([&] { return cache_->residency(ctx(), refs.back())->resident == refs.back().size; }));
  const auto before = source_->fetches();
  expect_read(open_object(refs.back()), 0, refs.back().size);
  EXPECT_EQ(source_->fetches(), before);
}

}  // namespace
}  // namespace thermo::cache::testing
