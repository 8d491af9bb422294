#include "read/reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "unit/read/fake_object.h"

namespace thermo::read {
namespace {

using cache::ByteRange;
using test::FakeObject;
constexpr std::uint64_t kMiB = 1u << 20;

std::vector<std::byte> pattern(std::uint64_t size) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 131 + (i >> 12));
  return bytes;
}

class ReaderTest : public testing::Test {
 protected:
  std::unique_ptr<Reader> open(std::vector<std::byte> bytes, std::string_view name = "data.bin") {
    bytes_ = bytes;
    cache::ObjectRef ref;
    ref.key = name;
    ref.size = bytes.size();
    object_ = std::make_shared<FakeObject>(ref, std::move(bytes));
    return open_reader(ctx_, object_, name, {}, memory_);
  }
  void expect_bytes(const Result<cache::PageReply>& reply, ByteRange range) {
    ASSERT_TRUE(reply) << reply.error().describe();
    std::size_t at = static_cast<std::size_t>(range.offset);
    for (const auto& slice : reply->slices) {
      ASSERT_EQ(std::memcmp(slice.bytes.data(), bytes_.data() + at, slice.bytes.size()), 0);
      at += slice.bytes.size();
    }
    ASSERT_EQ(at, range.end());
  }

  RequestContext ctx_;
  MemoryBudget memory_{1u << 30};
  std::vector<std::byte> bytes_;
  std::shared_ptr<FakeObject> object_;
};

TEST_F(ReaderTest, FirstReadAsksAheadBeforeItWaits) {
  auto reader = open(pattern(20 * kMiB));
  ctx_.deadline = MonoTime{} + std::chrono::seconds(1);
  expect_bytes(reader->read(ctx_, {0, 4096}, {}, false), {0, 4096});
  EXPECT_EQ(object_->log, (std::vector<std::string>{"probe", "prefetch", "read"}));
  ASSERT_EQ(object_->asked.size(), 1u);
  EXPECT_EQ(object_->asked[0].range, (ByteRange{0, 2 * kMiB}));
  EXPECT_EQ(object_->asked[0].priority, Priority::kForeground);  // the reader waits for it
  EXPECT_FALSE(object_->asked[0].has_deadline);                  // and it outlives this request
  EXPECT_EQ(object_->demand_pages, 0u);
}

TEST_F(ReaderTest, MayNotWaitTellsTheWindowOnce) {
  auto reader = open(pattern(20 * kMiB));
  auto reply = reader->read(ctx_.waiting(false), {0, 4096}, {}, false);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code(), ErrorCode::kWouldWaitStore);
  EXPECT_EQ(object_->asked.size(), 1u);
  expect_bytes(reader->read(ctx_, {0, 4096}, {}, true), {0, 4096});
  EXPECT_EQ(object_->asked.size(), 1u);
  EXPECT_EQ(object_->log.back(), "read");
}

TEST_F(ReaderTest, DeviceWaitIsNotAStall) {
  auto reader = open(pattern(20 * kMiB));
  expect_bytes(reader->read(ctx_, {0, kMiB}, {}, false), {0, kMiB});
  object_->arrive();
  object_->on_device = true;
  auto reply = reader->read(ctx_.waiting(false), {kMiB, kMiB}, {}, false);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code(), ErrorCode::kWouldWaitDevice);
  EXPECT_EQ(object_->asked.back().priority, Priority::kPrefetch);
  expect_bytes(reader->read(ctx_, {kMiB, kMiB}, {}, true), {kMiB, kMiB});
}

TEST_F(ReaderTest, ClipsAtTheEndAndAnswersNothingBehindIt) {
  auto reader = open(pattern(5000));
  expect_bytes(reader->read(ctx_, {4096, 4096}, {}, false), {4096, 904});
  auto behind = reader->read(ctx_, {5000, 4096}, {}, false);
  ASSERT_TRUE(behind);
  EXPECT_EQ(behind->size(), 0u);
  auto empty = open({});
  auto reply = empty->read(ctx_, {0, 4096}, {}, false);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->size(), 0u);
  EXPECT_TRUE(object_->log.empty());
}

TEST_F(ReaderTest, WholeFileInOrderFetchesEachPageOnceByPrefetch) {
  const std::uint64_t size = 130 * kMiB + 4321;
  auto reader = open(pattern(size));
  for (std::uint64_t at = 0; at < size; at += 128 << 10) {
    const ByteRange r{at, std::min<std::uint64_t>(128 << 10, size - at)};
    expect_bytes(reader->read(ctx_, r, {}, false), r);
  }
  EXPECT_EQ(object_->demand_pages, 0u);
  std::uint64_t total = 0;
  for (const auto& a : object_->asked) total += a.range.length;
  EXPECT_EQ(total, size);
}

TEST_F(ReaderTest, DroppedPrefetchIsAskedForLater) {
  auto reader = open(pattern(40 * kMiB));
  object_->admit = kMiB;
  expect_bytes(reader->read(ctx_, {0, kMiB}, {}, false), {0, kMiB});
  object_->admit = UINT64_MAX;
  expect_bytes(reader->read(ctx_, {kMiB, kMiB}, {}, false), {kMiB, kMiB});
  EXPECT_EQ(object_->asked.back().range.offset, kMiB);
  EXPECT_EQ(object_->demand_pages, 0u);
}

TEST_F(ReaderTest, NoMemoryNoPrefetchButTheReadGoesOn) {
  MemoryBudget tiny(kMiB);
  cache::ObjectRef ref;
  ref.size = 20 * kMiB;
  bytes_ = pattern(ref.size);
  object_ = std::make_shared<FakeObject>(ref, bytes_);
  auto reader = open_reader(ctx_, object_, "x", {}, tiny);
  expect_bytes(reader->read(ctx_, {0, kMiB}, {}, false), {0, kMiB});
  EXPECT_TRUE(object_->asked.empty());
}

TEST_F(ReaderTest, StoreErrorsComeThrough) {
  auto reader = open(pattern(20 * kMiB));
  object_->failure = ErrorCode::kPreconditionFailed;
  auto reply = reader->read(ctx_, {0, 4096}, {}, false);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code(), ErrorCode::kPreconditionFailed);
}

TEST_F(ReaderTest, TailOfParquetAtOpenAndNothingWaits) {
  auto reader = open(pattern(20 * kMiB), "dir/Quotes.PARQUET");
  ASSERT_EQ(object_->asked.size(), 1u);
  EXPECT_EQ(object_->asked[0].range, (ByteRange{19 * kMiB, kMiB}));
  EXPECT_EQ(object_->asked[0].priority, Priority::kPrefetch);
  EXPECT_EQ(object_->log, std::vector<std::string>{"prefetch"});
  reader = open(pattern(kMiB), "small.parquet");
  EXPECT_TRUE(object_->asked.empty());
  reader = open(pattern(20 * kMiB), "quotes.csv");
  EXPECT_TRUE(object_->asked.empty());
}

TEST_F(ReaderTest, LongFooterIsFetchedAsSoonAsTheTrailerIsRead) {
  const std::uint64_t size = 20 * kMiB, footer = 3 * kMiB;
  auto bytes = pattern(size);
  const std::uint8_t trailer[8] = {0, 0, 0x30, 0, 'P', 'A', 'R', '1'};  // 3 MiB
  std::memcpy(bytes.data() + size - 8, trailer, 8);
  auto reader = open(bytes, "t.parquet");
  object_->arrive();
  expect_bytes(reader->read(ctx_, {size - 8, 8}, {}, false), {size - 8, 8});
  ASSERT_EQ(object_->asked.size(), 2u);
  EXPECT_EQ(object_->asked[1].range, (ByteRange{size - 8 - footer, footer + 8 - kMiB}));
  object_->arrive();
  expect_bytes(reader->read(ctx_, {size - 8 - footer, footer}, {}, false), {size - 8 - footer, footer});
  EXPECT_EQ(object_->demand_pages, 0u);
}

TEST_F(ReaderTest, ImpossibleFooterLengthIsIgnored) {
  auto bytes = pattern(20 * kMiB);
  const std::uint8_t trailer[8] = {0xff, 0xff, 0xff, 0xff, 'P', 'A', 'R', '1'};
  std::memcpy(bytes.data() + bytes.size() - 8, trailer, 8);
  auto reader = open(bytes, "t.parquet");
  object_->arrive();
  expect_bytes(reader->read(ctx_, {20 * kMiB - 8, 8}, {}, false), {20 * kMiB - 8, 8});
  EXPECT_EQ(object_->asked.size(), 1u);
}

TEST_F(ReaderTest, ClosingForgetsQueuedPrefetches) {
  auto reader = open(pattern(20 * kMiB));
  reader.reset();
  EXPECT_EQ(object_->cancels, 1);
}

}  // namespace
}  // namespace thermo::read
