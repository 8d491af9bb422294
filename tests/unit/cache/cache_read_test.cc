#include <atomic>

#include "cache_fixture.h"

namespace thermo::cache::testing {
namespace {

using CacheReadTest = CacheTest;

TEST_F(CacheReadTest, FirstReadFetchesSecondDoesNot) {
  open();
  const auto ref = source_->add("t/a.bin", 3 * kMiB + 12345, 1);
  const auto object = open_object(ref);
  expect_read(object, 0, 3 * kMiB + 12345);
  settle(object);
  const auto before = source_->fetches();
  EXPECT_EQ(before, 1u);
  EXPECT_EQ(object->residency().resident, ref.size);
  expect_read_all(object, 64 * 1024);
  EXPECT_EQ(source_->fetches(), before);
  EXPECT_EQ(metric("thermocline_cache_fill_bytes_total"), static_cast<std::int64_t>(ref.size));
  EXPECT_EQ(served("warm"), ref.size);
  EXPECT_EQ(served("store"), ref.size);
}

TEST_F(CacheReadTest, EveryAlignmentGivesTheRightBytes) {
  open();
  const auto ref = source_->add("odd", 2 * kMiB + 4097, 2);
  const auto object = open_object(ref);
  fill_all(object);
  Rng rng(7);
  for (int i = 0; i < 400; ++i) {
    const std::uint64_t offset = rng.below(ref.size);
    const std::uint64_t length = 1 + rng.below(rng.chance(0.5) ? 300 : 200'000);
    expect_read(object, offset, std::min(length, ref.size - offset));
  }
  // Past the end: clipped, then empty.
  auto tail = read(object, ref.size - 10, 100);
  ASSERT_TRUE(tail);
  EXPECT_EQ(*tail, source_->body(ref).substr(ref.size - 10));
  auto past = read(object, ref.size, 100);
  ASSERT_TRUE(past);
  EXPECT_TRUE(past->empty());
}

TEST_F(CacheReadTest, SizesAroundEveryBorder) {
  open();
  std::uint64_t seed = 10;
  const std::vector<std::uint64_t> sizes = {1,     100,      4095, 4096,     4097,     65535,       65536,
                                            65537, kMiB - 1, kMiB, kMiB + 1, 8 * kMiB, 8 * kMiB + 1};
  for (const std::uint64_t size : sizes) {
    const auto ref = source_->add("size-" + std::to_string(size), size, seed++);
    const auto object = open_object(ref);
    fill_all(object);
    const auto before = source_->fetches();
    expect_read_all(object, 10'000);
    EXPECT_EQ(source_->fetches(), before) << size;
    EXPECT_EQ(fs::file_size(object_file(ref)), size);
    EXPECT_EQ(fs::exists(sidecar_file(ref)), size > kSmallObjectBytes) << size;
  }
}

TEST_F(CacheReadTest, EmptyObject) {
  open();
  const auto object = open_object(source_->add("empty", 0, 1));
  const auto bytes = read(object, 0, 10);
  ASSERT_TRUE(bytes);
  EXPECT_TRUE(bytes->empty());
  EXPECT_EQ(object->prefetch(ctx(Priority::kPrefetch), {0, 10}), 0u);
  EXPECT_EQ(source_->fetches(), 0u);
}

TEST_F(CacheReadTest, ScratchTooSmallIsAnError) {
  open();
  const auto object = open_object(source_->add("a", 5000, 1));
  std::vector<std::byte> scratch(100);
  const auto reply = object->read(ctx(), {0, 5000}, scratch);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code(), ErrorCode::kInvalidArgument);
}

TEST_F(CacheReadTest, ManyReadersOneFetch) {
  open();
  const auto ref = source_->add("shared", 4 * kMiB, 3);
  source_->close_gate(1000);
  std::vector<std::thread> readers;
  std::atomic<int> right{0};
  for (int i = 0; i < 16; ++i) {
    readers.emplace_back([&] {
      const auto object = open_object(ref);
      const auto bytes = read(object, 0, 4 * kMiB);
      if (bytes && *bytes == source_->body(ref)) ++right;
    });
  }
  ASSERT_TRUE(eventually([&] { return source_->fetches() == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  source_->open_gate();
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(right, 16);
  EXPECT_EQ(source_->fetches(), 1u);
}

TEST_F(CacheReadTest, ReadersGetTheGrowingPrefix) {
  open();
  const auto ref = source_->add("slow", 4 * kMiB, 4);
  source_->close_gate(300'000);
  const auto object = open_object(ref);
  (void)object->prefetch(ctx(Priority::kPrefetch), {0, 4 * kMiB});
  expect_read(object, 0, 4096);  // long before the page, let alone the fill, is complete
  expect_read(object, 200'000, 100'000);
  EXPECT_EQ(object->residency().resident, 0u);
  EXPECT_EQ(object->residency().filling, ref.size);
  RequestContext hurried = ctx();
  hurried.deadline = clock_.now() + Millis(0);
  const auto late = read(*object, hurried, {300'000, 1});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::kTimeout);
  source_->open_gate();
  expect_read_all(object);
  EXPECT_EQ(source_->fetches(), 1u);
}

TEST_F(CacheReadTest, AWaiterCanBeStopped) {
  open();
  source_->close_gate(0);
  const auto object = open_object(source_->add("stuck", kMiB, 4));
  std::stop_source stop;
  RequestContext c = ctx();
  c.stop = stop.get_token();
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    stop.request_stop();
  });
  const auto bytes = read(*object, c, {0, 100});
  later.join();
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code(), ErrorCode::kCancelled);
  source_->open_gate();
  expect_read(object, 0, 100);
  EXPECT_EQ(source_->fetches(), 1u);  // the fill outlived the reader
}

TEST_F(CacheReadTest, WithoutWaitingOnlyMemoryAnswers) {
  open();
  const auto ref = source_->add("nowait", 2 * kMiB, 5);
  const auto object = open_object(ref);
  const auto c = ctx().waiting(false);
  auto bytes = read(*object, c, {0, 4096});
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code(), ErrorCode::kWouldWaitStore);
  fill_all(object);
  faults_->nowait_refuses = true;
  bytes = read(*object, c, {0, 4096});
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code(), ErrorCode::kWouldWaitDevice);
  faults_->nowait_refuses = false;
  bytes = read(*object, c, {4096, 4096});
  ASSERT_TRUE(bytes) << bytes.error().describe();  // just written: in the page cache
  EXPECT_EQ(*bytes, source_->body(ref).substr(4096, 4096));
}

TEST_F(CacheReadTest, AFailureIsReportedToWhoseAttemptItWas) {
  open();
  const auto ref = source_->add("flaky", 2 * kMiB, 6);
  const auto object = open_object(ref);
  source_->fail_next(1, Error(ErrorCode::kUnavailable, "down"));
  const auto bytes = read(object, 0, 100);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code(), ErrorCode::kUnavailable);
  expect_read_all(object);
  EXPECT_EQ(metric("thermocline_cache_fill_errors_total"), 1);
}

TEST_F(CacheReadTest, OthersTryOnceThemselvesWithTheirOwnSource) {
  open();
  const auto ref = source_->add("cred", 2 * kMiB, 7);
  auto denied = std::make_shared<FakeSource>();
  (void)denied->add("cred", 2 * kMiB, 7);
  denied->close_gate(0);
  denied->fail_next(1, Error(ErrorCode::kAccessDenied, "no"), 10);
  const auto theirs = cache_->open(ref, denied);
  const auto ours = open_object(ref);
  std::thread first([&] {
    const auto bytes = read(theirs, 0, 100);
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().code(), ErrorCode::kAccessDenied);
  });
  ASSERT_TRUE(eventually([&] { return denied->fetches() == 1; }));
  std::thread second([&] { expect_read(ours, 0, 100); });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(source_->fetches(), 0u);  // joined, not doubled
  denied->open_gate();
  first.join();
  second.join();
  EXPECT_EQ(source_->fetches(), 1u);
}

TEST_F(CacheReadTest, CompletePagesOfABrokenFillStay) {
  open();
  const auto ref = source_->add("broken", 4 * kMiB, 8);
  const auto object = open_object(ref);
  source_->fail_next(1, Error(ErrorCode::kUnavailable, "cut"), 2 * kMiB + 5);
  const auto bytes = read(object, 0, 4 * kMiB);
  ASSERT_FALSE(bytes);
  settle(object);
  EXPECT_EQ(object->residency().resident, 2 * kMiB);
  expect_read_all(object);
  ASSERT_EQ(source_->ranges().size(), 2u + 1u);  // one page per read from here on
  EXPECT_EQ(source_->ranges()[1].offset, 2 * kMiB);
}

TEST_F(CacheReadTest, NothingStaysOfABodyThatFailedItsChecksum) {
  open();
  const auto ref = source_->add("poison", 3 * kMiB, 9);
  const auto object = open_object(ref);
  source_->fail_next(1, Error(ErrorCode::kCorrupt, "checksum of the body"), 3 * kMiB);
  (void)object->prefetch(ctx(Priority::kPrefetch), {0, 3 * kMiB});
  ASSERT_TRUE(eventually([&] { return metric("thermocline_cache_fill_errors_total") == 1; }));
  settle(object);
  ASSERT_TRUE(eventually([&] { return object->residency().resident == 0; }));
  expect_read_all(object);
}

TEST_F(CacheReadTest, AReplacedObjectIsStaleForEverybody) {
  open();
  const auto ref = source_->add("gone", 4 * kMiB, 10);
  const auto object = open_object(ref);
  expect_read(object, 0, 100);
  settle(object);
  const std::string body = source_->body(ref);
  source_->remove(ref);
  EXPECT_EQ(*read(object, 0, 100), body.substr(0, 100));  // still there
  for (int i = 0; i < 2; ++i) {
    const auto bytes = read(object, 2 * kMiB, 100);
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().code(), ErrorCode::kStale);
  }
}

TEST_F(CacheReadTest, ASourceThatSendsTooMuchOrTooLittleIsCorrupt) {
  struct Wrong final : Source {
    explicit Wrong(std::int64_t more) : by(more) {}
    std::int64_t by;
    Result<void> fetch(const RequestContext&, const ObjectRef&, ByteRange range, store::BodySink& sink) override {
      const std::string bytes(static_cast<std::size_t>(static_cast<std::int64_t>(range.length) + by), 'x');
      return sink.write(std::as_bytes(std::span(bytes.data(), bytes.size())));
    }
  };
  open();
  for (const int by : {-1, 1}) {
    const auto object = cache_->open(make_ref("wrong" + std::to_string(by), 5000), std::make_shared<Wrong>(by));
    const auto bytes = read(object, 4990, 10);
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().code(), ErrorCode::kCorrupt);
  }
}

TEST_F(CacheReadTest, PrefetchMakesFewAlignedRequests) {
  open();
  const auto ref = source_->add("long", 40 * kMiB, 11);
  const auto object = open_object(ref);
  source_->close_gate(0);
  const auto c = ctx(Priority::kPrefetch);
  EXPECT_EQ(object->prefetch(c, {3 * kMiB, 30 * kMiB}), 30 * kMiB);
  EXPECT_EQ(object->prefetch(c, {3 * kMiB, 30 * kMiB}), 30 * kMiB);  // all on its way already
  source_->open_gate();
  settle(object);
  auto ranges = source_->ranges();
  std::sort(ranges.begin(), ranges.end());
  const std::vector<ByteRange> want = {
      {3 * kMiB, 5 * kMiB}, {8 * kMiB, 8 * kMiB}, {16 * kMiB, 8 * kMiB}, {24 * kMiB, 8 * kMiB}, {32 * kMiB, kMiB}};
  EXPECT_EQ(ranges, want);
  EXPECT_EQ(object->residency().resident, 30 * kMiB);
}

TEST_F(CacheReadTest, NeighbouringQueuedMissesBecomeOneRequest) {
  fill_threads_ = 1;
  open();
  const auto blocker = open_object(source_->add("blocker", kMiB, 12));
  const auto object = open_object(source_->add("steps", 8 * kMiB, 13));
  source_->close_gate(0);
  const auto c = ctx(Priority::kPrefetch);
  (void)blocker->prefetch(c, {0, kMiB});
  ASSERT_TRUE(eventually([&] { return source_->fetches() == 1; }));
  for (std::uint64_t page = 0; page < 8; ++page) EXPECT_EQ(object->prefetch(c, {page * kMiB, kMiB}), kMiB);
  source_->open_gate();
  settle(object);
  EXPECT_EQ(source_->fetches(), 2u);
  expect_read_all(object);
}

TEST_F(CacheReadTest, PrefetchLeavesAQuarterOfTheMemory) {
  set_memory(16 * kMiB);
  open();
  const auto ref = source_->add("big", 64 * kMiB, 14);
  const auto object = open_object(ref);
  source_->close_gate(0);
  EXPECT_EQ(object->prefetch(ctx(Priority::kPrefetch), {0, 64 * kMiB}), 12 * kMiB);
  EXPECT_EQ(memory_->available(Priority::kForeground), 4 * kMiB);
  std::thread reader([&] { expect_read(object, 63 * kMiB, kMiB); });
  ASSERT_TRUE(eventually([&] {
    const auto ranges = source_->ranges();
    return std::any_of(ranges.begin(), ranges.end(), [](const ByteRange& r) { return r.offset == 63 * kMiB; });
  }));
  source_->open_gate();
  reader.join();
  settle(object);
}

TEST_F(CacheReadTest, AClosedHandleDropsItsQueuedPrefetches) {
  fill_threads_ = 1;
  open();
  const auto blocker = open_object(source_->add("blocker", kMiB, 15));
  const auto ref = source_->add("dropped", 32 * kMiB, 16);
  source_->close_gate(0);
  const auto c = ctx(Priority::kPrefetch);
  (void)blocker->prefetch(c, {0, kMiB});
  ASSERT_TRUE(eventually([&] { return source_->fetches() == 1; }));
  auto object = open_object(ref);
  EXPECT_EQ(object->prefetch(c, {0, 32 * kMiB}), 32 * kMiB);
  const auto used = memory_->used();
  object.reset();
  EXPECT_EQ(memory_->used(), used - 32 * kMiB);
  source_->open_gate();
  settle(blocker);
  EXPECT_EQ(source_->fetches(), 1u);
}

TEST_F(CacheReadTest, AReaderPromotesThePrefetchItWaitsFor) {
  fill_threads_ = 1;
  open();
  const auto object = open_object(source_->add("queue", 64 * kMiB, 17));
  source_->close_gate(0);
  (void)object->prefetch(ctx(Priority::kPrefetch), {0, 64 * kMiB});
  ASSERT_TRUE(eventually([&] { return source_->fetches() == 1; }));
  std::thread reader([&] { expect_read(object, 56 * kMiB, kMiB); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  source_->open_gate();
  reader.join();
  settle(object);
  EXPECT_EQ(source_->ranges()[1].offset, 56 * kMiB);
  EXPECT_EQ(source_->fetches(), 8u);
}

TEST_F(CacheReadTest, AReadLargerThanTheMemoryEnds) {
  set_memory(4 * kMiB);
  open();
  const auto ref = source_->add("huge", 24 * kMiB, 18);
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] { expect_read(open_object(ref), 0, 24 * kMiB); });
  }
  for (auto& reader : readers) reader.join();
}

TEST_F(CacheReadTest, LocationsAndResidency) {
  open();
  const auto ref = source_->add("where", 4 * kMiB + 10, 19);
  {
    const auto object = open_object(ref);
    expect_read(object, kMiB, 2 * kMiB);
    settle(object);
  }
  const auto runs = cache_->locations(ref, {0, ref.size});
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].range, (ByteRange{kMiB, 2 * kMiB}));
  EXPECT_EQ(runs[0].tier, "warm");
  EXPECT_EQ(cache_->locations(ref, {kMiB + 5, 10}).at(0).range, (ByteRange{kMiB + 5, 10}));
  const auto residency = cache_->residency(ctx(), ref);
  ASSERT_TRUE(residency);
  EXPECT_EQ(residency->resident, 2 * kMiB);
  EXPECT_EQ(residency->size, ref.size);
  const auto other = cache_->residency(ctx(), make_ref("never seen", 77));
  ASSERT_TRUE(other);
  EXPECT_EQ(other->resident, 0u);
}

TEST_F(CacheReadTest, AfterShutdownHitsGoOnAndMissesSayWhy) {
  open();
  const auto ref = source_->add("after", 2 * kMiB, 20);
  const auto object = open_object(ref);
  expect_read(object, 0, kMiB);
  settle(object);
  cache_->shutdown();
  cache_->shutdown();
  expect_read(object, 0, kMiB);
  const auto bytes = read(object, kMiB, 10);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code(), ErrorCode::kCancelled);
}

TEST_F(CacheReadTest, ShutdownDoesNotWaitForAStuckSource) {
  open();
  const auto object = open_object(source_->add("stuck", 2 * kMiB, 21));
  source_->close_gate(0);
  (void)object->prefetch(ctx(Priority::kPrefetch), {0, 2 * kMiB});
  ASSERT_TRUE(eventually([&] { return source_->fetches() == 1; }));
  const auto before = std::chrono::steady_clock::now();
  cache_->shutdown();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(8));
}

}  // namespace
}  // namespace thermo::cache::testing
