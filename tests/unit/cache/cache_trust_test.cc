// Bytes that must never be served, and files that must not outlive their charge: what happens when transfers, eviction, restarts
// and the device go wrong in an unlucky order.

#include "cache_fixture.h"

namespace thermo::cache::testing {
namespace {

class CacheTrustTest : public CacheTest {
 protected:
  /// What a killed process would leave at this moment becomes the folder; the cache is opened on it.
  void kill_and_reopen() {
    const fs::path next = base_ / ("after-kill-" + std::to_string(++kills_));
    fs::copy(root_, next, fs::copy_options::recursive);
    close();
    root_ = next;
    open();
  }
  void expect_charge_is_usage() {
    EXPECT_TRUE(eventually([&] { return cache_->status().used_bytes == disk_usage(); }))
        << cache_->status().used_bytes << " charged, " << disk_usage() << " on disk";
  }
  int kills_ = 0;
};

TEST_F(CacheTrustTest, PagesOfATransferThatHasNotEndedAreNotBelievedAfterAKill) {
  open();
  const auto ref = source_->add("late", 4 * kMiB, 1);
  const auto object = open_object(ref);
  source_->damage_next(1);
  source_->close_gate(3 * kMiB + 10);
  (void)object->prefetch(ctx(Priority::kPrefetch), {0, ref.size});
  // Three pages with a wrong byte each are on disk with checksums that match them.
  ASSERT_TRUE(eventually([&] { return object->residency().resident == 3 * kMiB; }));
  kill_and_reopen();
  const auto again = open_object(ref);
  EXPECT_EQ(again->residency().resident, 0u);
  source_->open_gate();
  expect_read_all(again);
}

TEST_F(CacheTrustTest, PagesOfATransferThatProvedWrongStayGone) {
  open();
  const auto large = source_->add("large", 4 * kMiB, 1);
  const auto small = source_->add("small", 9'000, 2);
  for (const auto& ref : {large, small}) {
    const auto object = open_object(ref);
    source_->damage_next(1);
    source_->close_gate(ref.size);  // all of it comes; that it was wrong is known later
    (void)object->prefetch(ctx(Priority::kPrefetch), {0, ref.size});
    ASSERT_TRUE(eventually([&] { return object->residency().resident == ref.size; }));
    source_->open_gate();
    settle(object);
    EXPECT_EQ(object->residency().resident, 0u);
  }
  kill_and_reopen();
  for (const auto& ref : {large, small}) EXPECT_EQ(open_object(ref)->residency().resident, 0u);
  close();
  open();
  for (const auto& ref : {large, small}) {
    EXPECT_EQ(open_object(ref)->residency().resident, 0u);
    expect_read_all(open_object(ref));
  }
}

TEST_F(CacheTrustTest, AHealThatBroughtWrongBytesIsNotBelievedAfterAKill) {
  std::uint64_t seed = 1;
  for (const bool ended : {false, true}) {
    for (const std::uint64_t size : {2 * kMiB, std::uint64_t{9000}}) {
      open();
      const auto ref = source_->add("o" + std::to_string(seed), size, seed);
      ++seed;
      auto object = open_object(ref);
      fill_all(object);
      flip(object_file(ref), 5000);
      source_->damage_next(1);
      source_->close_gate(std::min(size, kMiB));
      (void)read(*object, ctx(), {4096, 100});  // finds the damage; the transfer that should heal it is as bad
      ASSERT_TRUE(eventually([&] { return object->residency().resident == size; }));
      if (ended) {
        source_->open_gate();
        settle(object);
      }
      object.reset();
      kill_and_reopen();
      source_->open_gate();
      expect_read_all(open_object(ref), 4096);
      close();
    }
  }
}

TEST_F(CacheTrustTest, AHealedPageIsKeptByARestart) {
  open();
  const auto ref = source_->add("heal", 3 * kMiB, 1);
  const auto small = source_->add("small", 9'000, 2);
  for (const auto& r : {ref, small}) {
    fill_all(open_object(r));
    flip(object_file(r), 5000);
    fill_all(open_object(r));
  }
  const auto before = source_->fetches();
  kill_and_reopen();
  for (const auto& r : {ref, small}) expect_read_all(open_object(r));
  EXPECT_EQ(source_->fetches(), before);
}

TEST_F(CacheTrustTest, LateWritesOfAnEarlierLifeLeaveTheNewFilesAlone) {
  open();
  const auto ref = source_->add("mid", 8 * kMiB, 4);
  const auto object = open_object(ref);
  source_->close_gate(3 * kMiB + 100);
  (void)object->prefetch(ctx(Priority::kPrefetch), {0, ref.size});
  ASSERT_TRUE(eventually([&] { return object->residency().resident == 3 * kMiB; }));
  ASSERT_TRUE(cache_->free(ref.version));
  // A second life begins while the first transfer still runs.
  source_->close_gate(kMiB);
  expect_read(object, 0, 4096);
  ASSERT_TRUE(eventually([&] { return object->residency().resident == kMiB; }));
  source_->open_gate();
  settle(object);
  EXPECT_TRUE(fs::exists(object_file(ref)));
  EXPECT_TRUE(fs::exists(sidecar_file(ref)));
  expect_charge_is_usage();
  const auto before = source_->fetches();
  kill_and_reopen();
  expect_read(open_object(ref), 0, 4096);
  EXPECT_EQ(source_->fetches(), before);
}

TEST_F(CacheTrustTest, FreeIsRefusedWhereNothingCanBeRemoved) {
  open();
  const auto ref = source_->add("kept", 2 * kMiB, 1);
  const auto object = open_object(ref);
  fill_all(object);
  const auto used = cache_->status().used_bytes;
  faults_->write_errno = EROFS;
  const auto freed = cache_->free(ref.version);
  ASSERT_FALSE(freed);
  EXPECT_EQ(freed.error().code(), ErrorCode::kReadOnly);
  EXPECT_EQ(cache_->status().used_bytes, used);  // what is on the disk is paid for
  expect_read_all(object);
  faults_->write_errno = 0;
  clock_.advance(std::chrono::seconds(12));
  ASSERT_TRUE(eventually([&] { return cache_->status().device_state == "ok"; }));
  expect_read_all(object);
  settle(object);
  expect_charge_is_usage();
}

TEST_F(CacheTrustTest, APageThatCouldOnlyBeWrittenInPartIsPaidFor) {
  open();
  const auto ref = source_->add("part", 3 * kMiB, 1);
  const auto object = open_object(ref);
  expect_read(object, 0, 4096);
  settle(object);
  faults_->write_budget = kMiB;  // data fits, its checksums do not
  expect_read(object, kMiB, 4096);
  settle(object);
  EXPECT_EQ(object->residency().resident, kMiB);
  expect_charge_is_usage();
  faults_->write_budget = ~0ull;
  close();
  open();
  expect_charge_is_usage();
  EXPECT_EQ(open_object(ref)->residency().resident, kMiB);
}

TEST_F(CacheTrustTest, FilesThatCouldNotBeMadeLeaveNothing) {
  open();
  const auto ref = source_->add("half", 3 * kMiB, 1);
  faults_->write_budget = 100;  // not even the header
  expect_read_all(open_object(ref));
  EXPECT_TRUE(eventually([&] { return cache_->status().device_state == "degraded"; }));  // written after the reader was served
  EXPECT_TRUE(eventually([&] { return !fs::exists(object_file(ref)) && !fs::exists(sidecar_file(ref)); }));
  EXPECT_TRUE(eventually([&] { return cache_->status().used_bytes == 0; }));
}

TEST_F(CacheTrustTest, OrderOfEvictionSurvivesAKill) {
  open();
  std::vector<ObjectRef> refs;
  for (std::uint64_t i = 0; i < 4; ++i) {
    refs.push_back(source_->add("o" + std::to_string(i), 2 * kMiB, i));
    fill_all(open_object(refs.back()));
  }
  kill_and_reopen();
  ASSERT_TRUE(eventually([&] { return cache_->status().objects == 4; }));
  cache_->set_limit(5 * kMiB);
  EXPECT_EQ(cache_->residency(ctx(), refs[0])->resident, 0u);
  EXPECT_EQ(cache_->residency(ctx(), refs[1])->resident, 0u);
  EXPECT_EQ(cache_->residency(ctx(), refs[2])->resident, 2 * kMiB);
  EXPECT_EQ(cache_->residency(ctx(), refs[3])->resident, 2 * kMiB);
}

TEST_F(CacheTrustTest, OpeningTouchesNoDisk) {
  open();
  const auto ref = source_->add("lazy", 3 * kMiB, 1);
  const auto small = source_->add("small", 9'000, 2);
  const auto unknown = source_->add("unknown", 3 * kMiB, 3);
  expect_read(open_object(ref), 0, 2 * kMiB);
  fill_all(open_object(small));
  close();
  open();
  const auto fetched = source_->fetches();
  const auto opens = faults_->opens.load();
  const auto object = open_object(ref);
  const auto small_object = open_object(small);
  const auto unknown_object = open_object(unknown);
  EXPECT_EQ(faults_->opens, opens);
  const auto nowait = ctx().waiting(false);
  for (const auto& o : {object, small_object}) {
    const auto bytes = read(*o, nowait, {0, 100});
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().code(), ErrorCode::kWouldWaitDevice);
  }
  const auto miss = read(*unknown_object, nowait, {0, 100});
  ASSERT_FALSE(miss);
  EXPECT_EQ(miss.error().code(), ErrorCode::kWouldWaitStore);  // known at once: its reader's window wants to know
  EXPECT_EQ(faults_->opens, opens);

  // What is on disk is not fetched again, though nobody has looked yet when the prefetch is asked for.
  EXPECT_EQ(object->prefetch(ctx(Priority::kPrefetch), {0, ref.size}), ref.size);
  EXPECT_EQ(object->prefetch(ctx(Priority::kPrefetch), {ref.size, 10}), 0u);
  ASSERT_TRUE(eventually([&] { return object->residency().resident == ref.size; }));
  EXPECT_EQ(source_->fetches(), fetched + 1);
  EXPECT_EQ(source_->ranges().back(), (ByteRange{2 * kMiB, kMiB}));
  EXPECT_EQ(small_object->residency().resident, small.size);
  expect_read_all(small_object);
  EXPECT_EQ(source_->fetches(), fetched + 1);
}

TEST_F(CacheTrustTest, RunningOutOfDescriptorsIsNoFaultOfTheDevice) {
  open();
  std::vector<ObjectRef> refs;
  std::vector<ObjectPtr> objects;
  faults_->max_open_files = 24;
  for (std::uint64_t i = 0; i < 40; ++i) {
    refs.push_back(source_->add("f" + std::to_string(i), 100'000 + i, i));
    objects.push_back(open_object(refs.back()));
    fill_all(objects.back());
  }
  const auto before = source_->fetches();
  for (const auto& object : objects) expect_read_all(object);
  EXPECT_EQ(source_->fetches(), before);
  EXPECT_EQ(cache_->status().device_state, "ok");
  EXPECT_EQ(metric("thermocline_cache_dropped_objects_total"), 0);
}

TEST_F(CacheTrustTest, AnObjectLargerThanFilesMayBeIsNoFaultOfTheDevice) {
  open();
  faults_->max_file_bytes = 4 * kMiB;
  const auto ref = source_->add("giant", 5 * kMiB, 1);
  const auto object = open_object(ref);
  expect_read_all(object);
  settle(object);
  EXPECT_EQ(cache_->status().device_state, "ok");
  EXPECT_EQ(object->residency().resident, 0u);
  EXPECT_FALSE(fs::exists(object_file(ref)));
  fill_all(open_object(source_->add("other", 3 * kMiB, 2)));
  expect_charge_is_usage();
}

}  // namespace
}  // namespace thermo::cache::testing
