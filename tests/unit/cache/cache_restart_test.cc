#include "cache/record_store.h"
#include "cache/sidecar.h"
#include "cache_fixture.h"

namespace thermo::cache::testing {
namespace {

class CacheRestartTest : public CacheTest {
 protected:
  /// Two large objects and a small one, wholly resident; the cache is closed.
  void prepare() {
    open();
    a_ = source_->add("a", 3 * kMiB + 77, 1);
    b_ = source_->add("b", 2 * kMiB, 2);
    small_ = source_->add("small", 20'000, 3);
    for (const auto& ref : {a_, b_, small_}) fill_all(open_object(ref));
    close();
    before_ = source_->fetches();
  }
  /// Everything reads right; the bytes that had to be fetched again.
  std::uint64_t refetched() {
    std::uint64_t sum = 0;
    for (const auto& ref : {a_, b_, small_}) {
      const auto object = open_object(ref);
      expect_read_all(object, 200'000);
      settle(object);
      EXPECT_EQ(object->residency().resident, ref.size);
    }
    const auto ranges = source_->ranges();
    for (std::size_t i = before_; i < ranges.size(); ++i) sum += ranges[i].length;
    before_ = ranges.size();
    return sum;
  }
  ObjectRef a_, b_, small_;
  std::size_t before_ = 0;
};

TEST_F(CacheRestartTest, EverythingIsKept) {
  prepare();
  EXPECT_TRUE(fs::exists(root_ / "clean"));
  open();
  EXPECT_FALSE(fs::exists(root_ / "clean"));
  EXPECT_EQ(cache_->status().objects, 3u);
  EXPECT_EQ(cache_->status().used_bytes, disk_usage());
  EXPECT_EQ(cache_->residency(ctx(), a_)->resident, a_.size);
  EXPECT_EQ(cache_->residency(ctx(), small_)->resident, small_.size);
  EXPECT_EQ(refetched(), 0u);
}

TEST_F(CacheRestartTest, OrderOfEvictionIsKept) {
  prepare();
  open(7 * kMiB);
  fill_all(open_object(source_->add("c", 2 * kMiB + 500'000, 4)));
  EXPECT_EQ(cache_->residency(ctx(), a_)->resident, 0u);
  EXPECT_EQ(cache_->residency(ctx(), b_)->resident, b_.size);
}

TEST_F(CacheRestartTest, ASmallerLimitEvictsAtStart) {
  prepare();
  constexpr std::uint64_t kLimit = 3 * kMiB;
  open(kLimit);
  EXPECT_TRUE(eventually([&] { return cache_->status().used_bytes <= kLimit && disk_usage() <= kLimit; }));
  // The oldest had to go, and as it is larger than the tier now, some of it is never kept.
  EXPECT_EQ(cache_->residency(ctx(), a_)->resident, 0u);
  EXPECT_EQ(cache_->residency(ctx(), b_)->resident, b_.size);
  for (const auto& ref : {b_, small_, a_}) {
    const auto object = open_object(ref);
    expect_read_all(object, 200'000);
    settle(object);
    EXPECT_LE(cache_->status().used_bytes, kLimit);
  }
  const auto a = open_object(a_);
  EXPECT_EQ(a->residency().filling, 0u);  // what is only held in memory is not on its way anywhere
  EXPECT_LT(a->residency().resident, a_.size);
  EXPECT_TRUE(eventually([&] { return cache_->status().used_bytes == disk_usage(); }));
}

TEST_F(CacheRestartTest, AfterAKillEverythingThatReachedTheDiskIsKept) {
  open();
  a_ = source_->add("a", 3 * kMiB + 77, 1);
  b_ = source_->add("b", 2 * kMiB, 2);
  small_ = source_->add("small", 20'000, 3);
  for (const auto& ref : {a_, b_, small_}) fill_all(open_object(ref));
  // What a killed process leaves: the folder as it is at this moment.
  fs::copy(root_, base_ / "copy", fs::copy_options::recursive);
  close();
  root_ = base_ / "copy";
  before_ = source_->fetches();
  open();
  ASSERT_TRUE(eventually([&] { return cache_->status().used_bytes >= disk_usage(); }));
  EXPECT_EQ(refetched(), 0u);
}

TEST_F(CacheRestartTest, TornPagesAfterAnUncleanStopHeal) {
  prepare();
  mark_unclean();
  // Blocks that the kernel had not written: zeros, in data of one object and in the checksums of another.
  overwrite(object_file(a_), kMiB + 8192, std::string(40960, '\0'));
  overwrite(sidecar_file(b_), SidecarLayout(b_.size).crc_at(3), std::string(64, '\0'));
  overwrite(object_file(small_), 4096, std::string(4096, '\0'));
  open();
  EXPECT_EQ(refetched(), kMiB + kMiB + small_.size);
  EXPECT_GE(metric("thermocline_cache_corrupt_blocks_total"), 3);
  EXPECT_EQ(metric("thermocline_cache_corrupt_blocks_total"), metric("thermocline_cache_healed_blocks_total"));
  EXPECT_EQ(refetched(), 0u);
}

struct SidecarDamage {
  const char* name;
  std::function<void(const fs::path&)> apply;
};
class DamagedSidecar : public CacheRestartTest, public ::testing::WithParamInterface<SidecarDamage> {};

TEST_P(DamagedSidecar, TheObjectIsFetchedAgainAndTheReaderSeesNothing) {
  for (const bool clean : {true, false}) {
    prepare();
    if (!clean) mark_unclean();
    GetParam().apply(sidecar_file(a_));
    open();
    EXPECT_EQ(refetched(), a_.size) << (clean ? "clean" : "unclean");
    EXPECT_EQ(refetched(), 0u);
    ASSERT_TRUE(eventually([&] { return cache_->status().used_bytes == disk_usage(); }));
    close();
    fs::remove_all(root_);
  }
}
void cut(const fs::path& path, std::uint64_t size) { fs::resize_file(path, size); }
INSTANTIATE_TEST_SUITE_P(Kinds, DamagedSidecar,
                         ::testing::Values(SidecarDamage{"Deleted", [](const fs::path& p) { fs::remove(p); }},
                                           SidecarDamage{"Empty", [](const fs::path& p) { cut(p, 0); }},
                                           SidecarDamage{"HeaderCut", [](const fs::path& p) { cut(p, 1000); }},
                                           SidecarDamage{"ChecksumsCut", [](const fs::path& p) { cut(p, fs::file_size(p) - 1); }},
                                           SidecarDamage{"Longer", [](const fs::path& p) { cut(p, fs::file_size(p) + 1); }},
                                           SidecarDamage{"HeaderGarbage",
                                                         [](const fs::path& p) {
                                                           std::fstream file(p, std::ios::in | std::ios::out | std::ios::binary);
                                                           file.seekp(30);
                                                           file << "garbage";
                                                         }}),
                         [](const auto& param) { return std::string(param.param.name); });

TEST_F(CacheRestartTest, ASidecarOfAnotherObjectVouchesForNothing) {
  prepare();
  const auto twin = source_->add("twin", a_.size, 9);
  open();
  fill_all(open_object(twin));
  close();
  fs::copy_file(sidecar_file(twin), sidecar_file(a_), fs::copy_options::overwrite_existing);
  before_ = source_->fetches();
  open();
  EXPECT_EQ(refetched(), a_.size);
}

TEST_F(CacheRestartTest, AFileCutWhileClosedLosesOnlyThosePages) {
  prepare();
  cut(object_file(a_), 2 * kMiB + 5);
  open();
  EXPECT_EQ(refetched(), kMiB + 77);
  EXPECT_GT(metric("thermocline_cache_corrupt_blocks_total"), 0);
}

TEST_F(CacheRestartTest, DeletedObjectFiles) {
  for (const bool clean : {true, false}) {
    prepare();
    if (!clean) mark_unclean();
    fs::remove(object_file(b_));
    fs::remove(object_file(small_));
    open();
    EXPECT_EQ(refetched(), b_.size + small_.size);
    EXPECT_TRUE(eventually([&] { return cache_->status().used_bytes == disk_usage(); }));
    close();
    fs::remove_all(root_);
  }
}

TEST_F(CacheRestartTest, AnUncleanStartForgetsWhatIsGone) {
  prepare();
  mark_unclean();
  fs::remove_all(root_ / "objects");
  open();
  EXPECT_TRUE(eventually([&] { return cache_->status().objects == 0; }));
  EXPECT_EQ(cache_->status().used_bytes, 0u);
}

TEST_F(CacheRestartTest, ADeletedDatabaseIsRebuiltFromTheSidecars) {
  prepare();
  fs::remove_all(root_ / "records");
  open();
  ASSERT_TRUE(eventually([&] { return cache_->status().objects == 2; }));
  ASSERT_TRUE(eventually([&] { return !fs::exists(object_file(small_)); }));  // forgotten: nothing vouches for it
  EXPECT_EQ(cache_->status().used_bytes, disk_usage());
  EXPECT_EQ(cache_->residency(ctx(), a_)->resident, a_.size);
  EXPECT_EQ(refetched(), small_.size);
  close();
  open();
  EXPECT_EQ(cache_->status().objects, 3u);
  EXPECT_EQ(refetched(), 0u);
}

TEST_F(CacheRestartTest, AnObjectOpenedBeforeTheRebuildReachesItIsNotFetchedAgain) {
  prepare();
  fs::remove_all(root_ / "records");
  open();
  const auto object = open_object(a_);  // at once
  expect_read_all(object);
  EXPECT_EQ(source_->fetches(), before_);
  EXPECT_TRUE(eventually([&] { return cache_->status().objects == 2 && cache_->status().used_bytes == disk_usage(); }));
}

TEST_F(CacheRestartTest, ACorruptDatabaseIsRebuiltFromTheSidecars) {
  for (const char* victim : {".sst", "CURRENT", "MANIFEST"}) {
    prepare();
    int damaged = 0;
    for (const auto& file : fs::directory_iterator(root_ / "records")) {
      const std::string name = file.path().filename().string();
      if (name.find(victim) == std::string::npos) continue;
      const auto size = fs::file_size(file);
      for (std::uint64_t at = 0; at < size; at += 16) flip(file.path(), at);
      ++damaged;
    }
    ASSERT_GT(damaged, 0) << victim;
    open();
    EXPECT_TRUE(eventually([&] { return cache_->status().objects == 2; })) << victim;
    EXPECT_EQ(refetched(), small_.size) << victim;
    close();
    fs::remove_all(root_);
  }
}

TEST_F(CacheRestartTest, StrayFilesAreRemovedAfterAnUncleanStop) {
  prepare();
  mark_unclean();
  const auto stray = make_ref("stray", 5 * kMiB);
  const auto lonely = make_ref("lonely", 5 * kMiB);
  for (const auto& dir : {object_file(stray).parent_path(), object_file(lonely).parent_path(), root_ / "objects" / "00"}) {
    fs::create_directories(dir);
  }
  std::ofstream(object_file(stray)) << "no sidecar";
  std::ofstream(root_ / "objects" / "00" / "notes.txt") << "not ours";
  std::ofstream(sidecar_file(lonely)) << "no object";
  for (const auto& path : {object_file(stray), sidecar_file(lonely), root_ / "objects" / "00" / "notes.txt"})
    ASSERT_TRUE(fs::exists(path));
  open();
  EXPECT_TRUE(eventually([&] {
    return !fs::exists(object_file(stray)) && !fs::exists(sidecar_file(lonely)) &&
           !fs::exists(root_ / "objects" / "00" / "notes.txt");
  }));
  EXPECT_TRUE(eventually([&] { return cache_->status().used_bytes == disk_usage(); }));
  EXPECT_EQ(refetched(), 0u);
}

TEST_F(CacheRestartTest, AnotherFormatIsRefusedWithTheMend) {
  prepare();
  std::ofstream(root_ / "FORMAT") << "thermocline-cache 2\n";
  const auto opened = try_open(1024 * kMiB);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), ErrorCode::kNotSupported);
  EXPECT_NE(opened.error().message().find("--cache"), std::string_view::npos);
  EXPECT_NE(opened.error().message().find("'2'"), std::string_view::npos);
  EXPECT_TRUE(fs::exists(object_file(a_)));  // nothing was touched
}

TEST_F(CacheRestartTest, TwoOwnersOfOneFolder) {
  open();
  auto first = std::move(cache_);
  const auto second = try_open(1024 * kMiB);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::kBusy);
  EXPECT_NE(second.error().message().find(std::to_string(::getpid())), std::string_view::npos);
  first.reset();
  EXPECT_TRUE(try_open(1024 * kMiB));
}

TEST_F(CacheRestartTest, AFolderThatIsAFileInTheWay) {
  fs::remove_all(root_);
  fs::create_directories(root_);
  fs::create_directories(root_ / "lock");
  const auto opened = try_open(1024 * kMiB);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message().find("--cache"), std::string_view::npos);
}

TEST_F(CacheRestartTest, RepeatedKillsInTheMiddleOfFills) {
  a_ = source_->add("a", 6 * kMiB, 1);
  b_ = source_->add("b", 4 * kMiB + 4097, 2);
  small_ = source_->add("small", 50'000, 3);
  Rng rng(5);
  for (int round = 0; round < 10; ++round) {
    open();
    for (const auto& ref : {a_, b_, small_}) {
      const auto object = open_object(ref);
      (void)object->prefetch(ctx(Priority::kPrefetch), {0, ref.size});
      const std::uint64_t offset = rng.below(ref.size - 1);
      expect_read(object, offset, std::min<std::uint64_t>(300'000, ref.size - offset));
    }
    const fs::path next = base_ / ("copy" + std::to_string(round));
    fs::copy(root_, next, fs::copy_options::recursive);
    close();
    fs::remove_all(root_);
    root_ = next;
  }
  open();
  (void)refetched();
  EXPECT_EQ(refetched(), 0u);
}

}  // namespace
}  // namespace thermo::cache::testing
