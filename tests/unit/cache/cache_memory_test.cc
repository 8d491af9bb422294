// Buffer memory: readers who starve for it, and what may be taken from whom.

#include <atomic>

#include "cache_fixture.h"

namespace thermo::cache::testing {
namespace {

using CacheMemoryTest = CacheTest;

TEST_F(CacheMemoryTest, StarvingReadersDoNotWaitForEachOther) {
  set_memory(16 * kMiB);
  fill_threads_ = 4;
  open(64 * 1024);  // nothing is cached: every page needs memory until it is read
  std::vector<ObjectRef> refs;
  for (std::uint64_t i = 0; i < 24; ++i) refs.push_back(source_->add("o" + std::to_string(i), 6 * kMiB, i));
  std::vector<std::thread> readers;
  std::atomic<int> right{0};
  for (const auto& ref : refs) {
    readers.emplace_back([&, ref] {
      const auto object = open_object(ref);
      for (std::uint64_t at = 0; at < ref.size; at += 3 * kMiB) {
        const auto bytes = read(object, at, 3 * kMiB);
        if (bytes && *bytes == source_->body(ref).substr(at, 3 * kMiB)) ++right;
      }
    });
  }
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(right, 48);
}

TEST_F(CacheMemoryTest, AReaderWhoGetsNoMemoryInTimeSaysSo) {
  set_memory(4 * kMiB);
  open();
  source_->close_gate(0);
  const auto hog = open_object(source_->add("hog", 8 * kMiB, 1));
  std::vector<std::thread> readers;
  for (std::uint64_t i = 0; i < 4; ++i) readers.emplace_back([&, i] { expect_read(hog, 2 * i * kMiB, 100); });
  ASSERT_TRUE(eventually([&] { return memory_->available(Priority::kForeground) == 0; }));
  const auto object = open_object(source_->add("late", kMiB, 2));
  RequestContext c = ctx();
  c.deadline = clock_.now() + std::chrono::seconds(30);
  std::thread waiter([&] {
    const auto bytes = read(*object, c, {0, 100});
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().code(), ErrorCode::kTimeout);
  });
  ASSERT_TRUE(eventually([&] { return object->residency().filling == kMiB; }));
  clock_.advance(std::chrono::seconds(31));
  waiter.join();
  EXPECT_EQ(object->residency().filling, 0u);
  source_->open_gate();
  for (auto& reader : readers) reader.join();
  expect_read(object, 0, 100);
}

TEST_F(CacheMemoryTest, AHungDeviceDoesNotStarveReaders) {
  set_memory(8 * kMiB);
  open();
  const auto ref = source_->add("hung", 24 * kMiB, 1);
  const auto object = open_object(ref);
  faults_->writes_hang = true;
  expect_read_all(object, 512 * 1024);
  faults_->writes_hang = false;
  settle(object);
  EXPECT_GT(metric("thermocline_cache_bypass_pages_total"), 0);
  clock_.advance(std::chrono::seconds(11));  // what was held goes
  ASSERT_TRUE(eventually([&] { return memory_->used() == 0; }));
  fill_all(object);
  EXPECT_EQ(cache_->status().device_state, "ok");
  EXPECT_TRUE(eventually([&] { return cache_->status().used_bytes == disk_usage(); }));
}

TEST_F(CacheMemoryTest, WhatIsFetchedAheadButNotCachedIsFetchedOnce) {
  set_memory(32 * kMiB);
  open(64 * 1024);
  const auto ref = source_->add("ahead", 96 * kMiB, 1);
  const auto object = open_object(ref);
  std::uint64_t asked = 0;
  for (std::uint64_t at = 0; at < ref.size; at += 128 * 1024) {
    // A window of 16 MiB, as a reader in order has it.
    if (asked < ref.size && asked < at + 16 * kMiB) asked += object->prefetch(ctx(Priority::kPrefetch), {asked, 8 * kMiB});
    ASSERT_NO_FATAL_FAILURE(expect_read(object, at, 128 * 1024));
  }
  std::uint64_t fetched = 0;
  for (const auto& range : source_->ranges()) fetched += range.length;
  EXPECT_LE(fetched, ref.size + 2 * kMiB);
}

TEST_F(CacheMemoryTest, DroppedPrefetchesRaceWithTheirStart) {
  fill_threads_ = 2;
  open();
  std::vector<ObjectRef> refs;
  for (std::uint64_t i = 0; i < 8; ++i) refs.push_back(source_->add("o" + std::to_string(i), 2 * kMiB, i));
  source_->chunk = kMiB;
  std::vector<std::thread> users;
  for (std::uint64_t t = 0; t < 3; ++t) {
    users.emplace_back([&, t] {
      Rng rng(t);
      for (int i = 0; i < 150; ++i) {
        const auto& ref = refs[rng.below(refs.size())];
        auto object = open_object(ref);
        (void)object->prefetch(ctx(Priority::kPrefetch), {0, ref.size});
        if (rng.chance(0.3)) std::this_thread::sleep_for(std::chrono::microseconds(rng.below(300)));
        object.reset();
        if (rng.chance(0.2)) (void)cache_->free(ref.version);
      }
    });
  }
  for (auto& user : users) user.join();
  settle(open_object(refs[0]));
  clock_.advance(std::chrono::seconds(11));  // what came too late for the tier is held no longer
  ASSERT_TRUE(eventually([&] { return memory_->used() == 0; }));
  for (const auto& ref : refs) fill_all(open_object(ref));
}

}  // namespace
}  // namespace thermo::cache::testing
