#include <atomic>

#include "cache/device_state.h"
#include "cache_fixture.h"

namespace thermo::cache::testing {
namespace {

using CacheFaultTest = CacheTest;

TEST_F(CacheFaultTest, AFlippedByteIsHealedAndCounted) {
  open();
  const auto ref = source_->add("flip", 3 * kMiB, 1);
  const auto object = open_object(ref);
  fill_all(object);
  const auto before = source_->fetches();
  flip(object_file(ref), kMiB + 5000);
  flip(object_file(ref), kMiB + 500'000);
  expect_read_all(object, 64 * 1024);
  settle(object);
  EXPECT_EQ(metric("thermocline_cache_corrupt_blocks_total"), 1);  // the first one brought the whole page back
  EXPECT_EQ(metric("thermocline_cache_healed_blocks_total"), 1);
  EXPECT_EQ(source_->fetches(), before + 1);
  EXPECT_EQ(source_->ranges().back(), (ByteRange{kMiB, kMiB}));
  expect_read_all(object);
  EXPECT_EQ(source_->fetches(), before + 1);
  EXPECT_EQ(object->residency().resident, ref.size);
}

TEST_F(CacheFaultTest, AFlippedByteInASmallObject) {
  open();
  const auto ref = source_->add("small", 30'000, 2);
  const auto object = open_object(ref);
  fill_all(object);
  flip(object_file(ref), 29'999);
  expect_read(object, 0, 4096);  // other blocks are fine
  EXPECT_EQ(metric("thermocline_cache_corrupt_blocks_total"), 0);
  expect_read(object, 29'990, 10);
  settle(object);
  EXPECT_EQ(metric("thermocline_cache_corrupt_blocks_total"), 1);
  EXPECT_EQ(metric("thermocline_cache_healed_blocks_total"), 1);
  const auto before = source_->fetches();
  expect_read_all(object);
  EXPECT_EQ(source_->fetches(), before);
}

TEST_F(CacheFaultTest, ADamagedChecksumIsHealedLikeDamagedData) {
  crc_cache_bytes_ = 0;  // every read takes the checksums from the sidecar
  open();
  const auto ref = source_->add("crc", 2 * kMiB, 3);
  const auto object = open_object(ref);
  fill_all(object);
  flip(sidecar_file(ref), fs::file_size(sidecar_file(ref)) - 3);
  expect_read_all(object);
  settle(object);
  EXPECT_EQ(metric("thermocline_cache_corrupt_blocks_total"), 1);
  const auto before = source_->fetches();
  expect_read_all(object);
  EXPECT_EQ(source_->fetches(), before);
}

TEST_F(CacheFaultTest, AFileCutShortWhileOpenIsHealed) {
  open();
  const auto ref = source_->add("cut", 3 * kMiB, 4);
  const auto object = open_object(ref);
  fill_all(object);
  fs::resize_file(object_file(ref), kMiB + 10);
  expect_read_all(object);
  settle(object);
  EXPECT_GT(metric("thermocline_cache_corrupt_blocks_total"), 0);
  EXPECT_EQ(metric("thermocline_cache_corrupt_blocks_total"), metric("thermocline_cache_healed_blocks_total"));
  const auto before = source_->fetches();
  expect_read_all(object);
  EXPECT_EQ(source_->fetches(), before);
}

TEST_F(CacheFaultTest, HealingWithTheStoreDownIsAnErrorNeverWrongBytes) {
  open();
  const auto ref = source_->add("down", 2 * kMiB, 5);
  const auto object = open_object(ref);
  fill_all(object);
  flip(object_file(ref), 100);
  source_->fail_next(1, Error(ErrorCode::kUnavailable, "down"));
  const auto bytes = read(object, 0, 4096);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code(), ErrorCode::kUnavailable);
  expect_read(object, kMiB, 4096);  // the other page is a hit
  expect_read_all(object);
}

class WriteFault : public CacheFaultTest, public ::testing::WithParamInterface<int> {};

TEST_P(WriteFault, ReadsGoOnAndTheDeviceComesBack) {
  open();
  const auto ref = source_->add("w", 4 * kMiB, 6);
  const auto kept = source_->add("kept", 2 * kMiB, 7);
  const auto kept_object = open_object(kept);
  fill_all(kept_object);

  faults_->write_errno = GetParam();
  const auto object = open_object(ref);
  expect_read_all(object, 128 * 1024);
  ASSERT_TRUE(eventually([&] { return cache_->status().device_state == "degraded"; }));
  EXPECT_FALSE(cache_->status().device_reason.empty());
  const auto before = source_->fetches();
  expect_read_all(kept_object);  // degraded still reads
  // With a full device one older object had to go for the attempt to make room.
  if (GetParam() != ENOSPC) {
    EXPECT_EQ(source_->fetches(), before);
  }
  expect_read_all(object, 64 * 1024);
  EXPECT_GT(metric("thermocline_cache_bypass_pages_total"), 0);

  // The probe fails while the fault lasts.
  clock_.advance(std::chrono::seconds(6));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(cache_->status().device_state, "degraded");

  settle_held();
  faults_->write_errno = 0;
  clock_.advance(std::chrono::seconds(12));
  ASSERT_TRUE(eventually([&] { return cache_->status().device_state == "ok"; }));
  expect_read_all(object);
  settle(object);
  expect_read_all(object);
  settle(object);
  EXPECT_EQ(object->residency().resident, ref.size);
  EXPECT_TRUE(eventually([&] { return cache_->status().used_bytes == disk_usage(); }));
}
INSTANTIATE_TEST_SUITE_P(Errors, WriteFault, ::testing::Values(ENOSPC, EROFS, EIO, EACCES));

TEST_F(CacheFaultTest, AFileSystemSmallerThanTheLimit) {
  open(1024 * kMiB);
  faults_->write_budget = 6 * kMiB;
  std::vector<ObjectRef> refs;
  for (std::uint64_t i = 0; i < 8; ++i) refs.push_back(source_->add("f" + std::to_string(i), 3 * kMiB, i));
  for (const auto& ref : refs) expect_read_all(open_object(ref), 256 * 1024);
  for (const auto& ref : refs) expect_read_all(open_object(ref), kMiB);
  EXPECT_LE(disk_usage(), 7 * kMiB);
}

TEST_F(CacheFaultTest, TenPercentReadErrorsUnderLoad) {
  crc_cache_bytes_ = 16 * 1024;
  open();
  std::vector<ObjectRef> refs;
  for (std::uint64_t i = 0; i < 4; ++i) {
    refs.push_back(source_->add("e" + std::to_string(i), 3 * kMiB, i));
    fill_all(open_object(refs.back()));
  }
  faults_->read_error_percent = 10;
  std::vector<std::thread> readers;
  std::atomic<int> slow{0};
  for (std::uint64_t t = 0; t < 4; ++t) {
    readers.emplace_back([&, t] {
      Rng rng(t);
      for (int i = 0; i < 100; ++i) {
        const auto& ref = refs[rng.below(refs.size())];
        const auto start = std::chrono::steady_clock::now();
        const std::uint64_t offset = rng.below(ref.size - 4096);
        expect_read(open_object(ref), offset, 4096);
        if (std::chrono::steady_clock::now() - start > std::chrono::seconds(2)) ++slow;
      }
    });
  }
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(slow, 0);
  EXPECT_EQ(cache_->status().device_state, "failed");
  settle_held();
  faults_->read_error_percent = 0;
  clock_.advance(std::chrono::seconds(12));  // a probe, and what was held in memory meanwhile goes
  ASSERT_TRUE(eventually([&] { return cache_->status().device_state == "ok"; }));
  for (const auto& ref : refs) fill_all(open_object(ref));
  const auto before = source_->fetches();
  for (const auto& ref : refs) expect_read_all(open_object(ref));
  EXPECT_EQ(source_->fetches(), before);
}

TEST_F(CacheFaultTest, TheFolderIsDeletedUnderUs) {
  open();
  const auto first = source_->add("first", 3 * kMiB, 1);
  const auto open_one = open_object(first);
  fill_all(open_one);
  const auto closed = source_->add("closed", 2 * kMiB, 2);
  fill_all(open_object(closed));
  fs::remove_all(root_);

  expect_read_all(open_one);
  expect_read_all(open_object(closed));
  const auto fresh = open_object(source_->add("fresh", 2 * kMiB, 3));
  expect_read_all(fresh, 64 * 1024);
  ASSERT_TRUE(eventually([&] { return cache_->status().device_state == "degraded"; }));
  settle_held();

  clock_.advance(std::chrono::seconds(12));
  ASSERT_TRUE(eventually([&] { return cache_->status().device_state == "ok"; })) << cache_->status().device_reason;
  EXPECT_EQ(cache_->status().used_bytes, 0u);
  expect_read_all(fresh);
  fill_all(fresh);
  fill_all(open_one);
  EXPECT_TRUE(fs::exists(object_file(first)));
  const auto before = source_->fetches();
  expect_read_all(open_one);
  EXPECT_EQ(source_->fetches(), before);
  // And it is a whole folder again: the next start finds everything.
  close();
  open();
  EXPECT_EQ(cache_->residency(ctx(), first)->resident, first.size);
  expect_read_all(open_object(first));
  EXPECT_EQ(source_->fetches(), before);
}

TEST_F(CacheFaultTest, NamesTooLongForASidecarAreServedUncached) {
  open();
  const auto ref = source_->add(std::string(5000, 'k'), 2 * kMiB, 1);
  const auto object = open_object(ref);
  expect_read_all(object, 128 * 1024);
  EXPECT_EQ(cache_->status().device_state, "ok");
  EXPECT_EQ(object->residency().resident, 0u);
}

TEST(DeviceStateTest, ReadErrorsFailItOnlyWhenTheyAreDense) {
  FakeClock clock;
  DeviceState device(clock);
  const Error error(ErrorCode::kIo, "x");
  for (std::size_t i = 0; i < 3 * DeviceState::kErrorsToFail; ++i) {
    device.read_failed(error);
    clock.advance(std::chrono::seconds(2));
    EXPECT_TRUE(device.may_read());
  }
  for (std::size_t i = 0; i < DeviceState::kErrorsToFail; ++i) device.read_failed(error);
  EXPECT_FALSE(device.may_read());
  EXPECT_FALSE(device.may_write());
  device.write_failed(error);  // never makes it better
  EXPECT_EQ(device.condition(), DeviceCondition::kFailed);
  EXPECT_FALSE(device.probe_due());
  clock.advance(DeviceState::kProbeInterval);
  EXPECT_TRUE(device.probe_due());
  EXPECT_FALSE(device.probe_due());
  device.probe_failed(Error(ErrorCode::kNoSpace, "still"));
  EXPECT_EQ(device.reason(), Error(ErrorCode::kNoSpace, "still").describe());
  device.probe_succeeded();
  EXPECT_TRUE(device.may_write());
  EXPECT_TRUE(device.reason().empty());
  clock.advance(DeviceState::kProbeInterval);
  EXPECT_FALSE(device.probe_due());
}

}  // namespace
}  // namespace thermo::cache::testing
