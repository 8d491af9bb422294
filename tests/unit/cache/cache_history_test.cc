// Everything at once, from a seed: readers, prefetches, evictions, frees, limits, a source and a device that fail. Whatever
// happens, bytes are right, nobody hangs, memory comes back and what is charged is what is on disk.

#include <atomic>

#include "cache_fixture.h"

namespace thermo::cache::testing {
namespace {

class CacheHistoryTest : public CacheTest, public ::testing::WithParamInterface<int> {
 protected:
  void use(std::uint64_t seed, const std::vector<ObjectRef>& refs, const std::atomic<bool>& stop) {
    Rng rng(seed);
    std::vector<ObjectPtr> held(3);
    while (!stop) {
      auto& object = held[rng.below(held.size())];
      if (!object || rng.chance(0.3)) object = open_object(refs[rng.below(refs.size())]);
      const std::uint64_t size = object->ref().size;
      const std::uint64_t offset = rng.below(size);
      const std::uint64_t length = std::min(size - offset, 1 + rng.below(rng.chance(0.5) ? 5000 : 2'000'000));
      switch (rng.below(12)) {
        case 0: (void)object->prefetch(ctx(Priority::kPrefetch), {offset, length}); break;
        case 1: object->cancel_prefetch(); break;
        case 2: (void)cache_->free(object->ref().version); break;
        case 3: (void)cache_->residency(ctx().waiting(rng.chance(0.5)), object->ref()); break;
        case 4: (void)cache_->locations(object->ref(), {offset, length}); break;
        default: check(*object, {offset, length}, rng.chance(0.3)); break;
      }
    }
  }

  void check(Object& object, ByteRange range, bool nowait) {
    RequestContext c = ctx().waiting(!nowait);
    const auto start = std::chrono::steady_clock::now();
    const auto bytes = read(object, c, range);
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(20)) ++slow_;
    ++reads_;
    if (bytes) {
      // Bytes of a transfer that had not ended yet may be wrong when it ends badly; those are handed on as they come.
      const bool right = *bytes == std::string_view(source_->body(object.ref())).substr(range.offset, range.length);
      if (!right) ++wrong_;
      return;
    }
    const ErrorCode code = bytes.error().code();
    const bool expected = code == ErrorCode::kUnavailable || code == ErrorCode::kTimeout ||
                          (nowait && (code == ErrorCode::kWouldWaitDevice || code == ErrorCode::kWouldWaitStore));
    if (!expected) ADD_FAILURE() << bytes.error().describe();
  }

  std::atomic<int> wrong_{0};
  std::atomic<int> slow_{0};
  std::atomic<int> reads_{0};
};

TEST_P(CacheHistoryTest, BytesAreRightAndAccountsAddUp) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  set_memory(6 * kMiB);
  crc_cache_bytes_ = 64 * 1024;
  fill_threads_ = 6;
  constexpr std::uint64_t kLimit = 9 * kMiB;
  open(kLimit);
  std::vector<ObjectRef> refs;
  for (std::uint64_t i = 0; i < 10; ++i) {
    refs.push_back(source_->add("o" + std::to_string(i), i % 4 == 0 ? 1 + i * 5000 : i * 400'000 + 70'000, seed * 100 + i));
  }
  std::atomic<bool> stop{false};
  std::vector<std::thread> users;
  for (std::uint64_t t = 0; t < 6; ++t) users.emplace_back([&, t] { use(seed * 10 + t, refs, stop); });
  Rng rng(seed);
  std::uint64_t over = 0;
  for (int i = 0; i < 60; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (rng.chance(0.2))
      source_->fail_next(2, Error(rng.chance(0.5) ? ErrorCode::kUnavailable : ErrorCode::kTimeout), rng.below(2 * kMiB));
    faults_->read_error_percent = rng.chance(0.2) ? 5 : 0;
    faults_->write_errno = rng.chance(0.1) ? EIO : rng.chance(0.1) ? ENOSPC : 0;
    faults_->nowait_refuses = rng.chance(0.3);
    if (rng.chance(0.3)) clock_.advance(std::chrono::seconds(6));
    const auto used = cache_->status().used_bytes;
    if (used > kLimit) over = std::max(over, used - kLimit);
  }
  faults_->read_error_percent = 0;
  faults_->write_errno = 0;
  stop = true;
  for (auto& user : users) user.join();
  EXPECT_EQ(wrong_, 0);
  EXPECT_EQ(slow_, 0);
  EXPECT_EQ(over, 0u);
  EXPECT_GT(reads_, 50);

  source_->fail_next(0, Error(ErrorCode::kUnavailable));
  clock_.advance(std::chrono::seconds(12));
  ASSERT_TRUE(eventually([&] {
    clock_.advance(std::chrono::seconds(1));
    return cache_->status().device_state == "ok";
  })) << cache_->status().device_reason;
  for (const auto& ref : refs) expect_read_all(open_object(ref), 300'000);
  settle(open_object(refs[0]));
  EXPECT_TRUE(eventually([&] { return cache_->status().used_bytes == disk_usage(); }))
      << cache_->status().used_bytes << " charged, " << disk_usage() << " on disk";
  EXPECT_LE(disk_usage(), kLimit);

  // And the next process finds it so.
  close();
  open(kLimit);
  EXPECT_TRUE(eventually([&] { return cache_->status().used_bytes == disk_usage(); }))
      << cache_->status().used_bytes << " charged, " << disk_usage() << " on disk";
  for (const auto& ref : refs) expect_read_all(open_object(ref), 300'000);
}
INSTANTIATE_TEST_SUITE_P(Seeds, CacheHistoryTest, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace thermo::cache::testing
