// The parts without I/O, against models and from seeds.

#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"
#include "cache/crc_cache.h"
#include "cache/fill_scheduler.h"
#include "cache/record.h"
#include "cache/sidecar.h"
#include "cache/space.h"
#include "fake_source.h"

namespace thermo::cache::testing {
namespace {

VersionId id_of(std::uint64_t n) { return {n * 0x9e3779b97f4a7c15u, n}; }

TEST(FifoTest, SeededHistoriesAgreeWithAModel) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    const auto fifo = make_fifo();
    std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> model;  // order -> number, bytes
    std::map<std::uint64_t, std::uint64_t> order_of;
    std::uint64_t next = 1;
    for (int step = 0; step < 500; ++step) {
      const std::uint64_t n = rng.below(40);
      const std::uint64_t bytes = rng.below(1000);
      const auto old = order_of.find(n);
      switch (rng.below(4)) {
        case 0:
          if (old != order_of.end()) break;
          fifo->on_insert(id_of(n), bytes, next);
          model[next] = {n, bytes};
          order_of[n] = next++;
          break;
        case 1:
          fifo->on_resize(id_of(n), bytes);
          if (old != order_of.end()) model[old->second].second = bytes;
          break;
        case 2:
          fifo->on_remove(id_of(n));
          if (old != order_of.end()) {
            model.erase(old->second);
            order_of.erase(old);
          }
          break;
        default: fifo->on_hit(id_of(n)); break;
      }
      ASSERT_EQ(fifo->count(), model.size());
      const auto item = fifo->find(id_of(n));
      ASSERT_EQ(item.has_value(), order_of.contains(n));
      std::vector<VersionId> all;
      for (const auto& [order, what] : model) all.push_back(id_of(what.first));
      ASSERT_EQ(fifo->all(), all);
      const std::uint64_t wanted = rng.below(5000);
      std::vector<VersionId> victims;
      std::uint64_t sum = 0;
      for (const auto& [order, what] : model) {
        if (sum >= wanted) break;
        if (what.first % 5 == 0) continue;
        victims.push_back(id_of(what.first));
        sum += what.second;
      }
      ASSERT_EQ(fifo->victims(wanted, [](const VersionId& id) { return id.low % 5 == 0; }), victims);
    }
  }
}

TEST(SpaceTest, NeverAboveTheLimitWhateverTheOrderOfEvents) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    metrics::Registry registry;
    constexpr std::uint64_t kLimit = 10'000;
    Space space(kLimit, registry.gauge("used", ""), registry.gauge("limit", ""));
    Rng rng(seed);
    std::vector<std::uint64_t> reserved;
    std::vector<Space::Victim> leaving;
    std::map<std::uint64_t, std::uint64_t> charged;
    for (int step = 0; step < 2000; ++step) {
      const std::uint64_t n = rng.below(30);
      switch (rng.below(5)) {
        case 0: {
          const std::uint64_t bytes = 1 + rng.below(1500);
          if (space.reserve(bytes)) reserved.push_back(bytes);
          break;
        }
        case 1:
          if (reserved.empty()) break;
          if (rng.chance(0.3)) {
            space.release(reserved.back());
          } else {
            const std::uint64_t before = charged.contains(n) ? charged[n] : 0;
            charged[n] = before + rng.below(reserved.back() + 1);
            space.settle(id_of(n), charged[n], reserved.back());
          }
          reserved.pop_back();
          break;
        case 2:
          for (const auto& victim : space.take_victims(rng.below(3000))) {
            charged.erase(victim.id.low);
            leaving.push_back(victim);
          }
          break;
        case 3:
          if (leaving.empty()) break;
          space.evicted(leaving.back().charge);
          leaving.pop_back();
          break;
        default:
          if (const auto freed = space.remove(id_of(n)); freed) {
            ASSERT_EQ(*freed, charged.at(n));
            charged.erase(n);
          }
          break;
      }
      std::uint64_t sum = 0;
      for (const auto bytes : reserved) sum += bytes;
      for (const auto& victim : leaving) sum += victim.charge;
      for (const auto& [number, bytes] : charged) sum += bytes;
      ASSERT_EQ(space.used(), sum);
      ASSERT_LE(space.used(), kLimit);
      ASSERT_EQ(space.objects(), charged.size());
    }
  }
}

TEST(SpaceTest, PinnedObjectsStayAndNobodyGoesInVain) {
  metrics::Registry registry;
  Space space(100, registry.gauge("used", ""), registry.gauge("limit", ""));
  for (std::uint64_t n = 0; n < 4; ++n) space.settle(id_of(n), 25, 0);
  space.pin(id_of(0));
  space.pin(id_of(1));
  space.pin(id_of(1));
  space.unpin(id_of(1));
  EXPECT_TRUE(space.take_victims(60).empty());  // 2 and 3 are not enough
  const auto some = space.take_victims(60, Space::Enough::kOrLess);
  ASSERT_EQ(some.size(), 2u);
  EXPECT_EQ(some[0].id, id_of(2));
  EXPECT_FALSE(space.reserve(1));  // their bytes count until they are gone
  for (const auto& victim : some) space.evicted(victim.charge);
  EXPECT_TRUE(space.reserve(50));
  space.unpin(id_of(0));
  EXPECT_EQ(space.take_victims(10).at(0).id, id_of(0));
}

TEST(CrcCacheTest, IsBoundedAndForgetsTheLeastRecentlyUsed) {
  CrcCache cache(8 * 20'000);
  const VersionId version = id_of(1);
  std::vector<std::uint32_t> crcs(kBlocksPerPage);
  for (std::uint64_t page = 0; page < 2000; ++page) {
    crcs[3] = static_cast<std::uint32_t>(page);
    cache.put(version, page, crcs);
    std::array<std::uint32_t, 1> out{};
    EXPECT_TRUE(cache.find(version, 0, 3, out)) << page;  // used all the time
    EXPECT_EQ(out[0], 0u);
    EXPECT_LE(cache.bytes(), 8u * 20'000u);
  }
  std::array<std::uint32_t, 2> out{};
  EXPECT_TRUE(cache.find(version, 1999, 2, out));
  EXPECT_EQ(out[1], 1999u);
  EXPECT_FALSE(cache.find(version, 1, 0, out));
  EXPECT_FALSE(cache.find(version, 1999, kBlocksPerPage - 1, out));  // past its end
  cache.erase(version, 1999);
  EXPECT_FALSE(cache.find(version, 1999, 2, out));
}

TEST(SidecarTest, HeaderComesBackAndEveryChangedByteIsRefused) {
  const ObjectRef ref = make_ref("a/ü\n b", 12'345'678, "\"etag\"");
  auto header = encode_sidecar_header(ref);
  ASSERT_TRUE(header);
  ASSERT_EQ(header->size(), kSidecarHeaderBytes);
  const auto bytes = [&] { return std::as_bytes(std::span(header->data(), header->size())); };
  const auto back = parse_sidecar_header(bytes());
  ASSERT_TRUE(back) << back.error().describe();
  EXPECT_EQ(back->version, ref.version);
  EXPECT_EQ(back->key, ref.key);
  EXPECT_EQ(back->etag, ref.etag);
  EXPECT_EQ(back->store_id, ref.store_id);
  EXPECT_EQ(back->size, ref.size);
  for (std::size_t i = 0; i < header->size(); ++i) {
    (*header)[i] = static_cast<char>((*header)[i] ^ 1);
    EXPECT_FALSE(parse_sidecar_header(bytes())) << i;
    (*header)[i] = static_cast<char>((*header)[i] ^ 1);
  }
  EXPECT_FALSE(parse_sidecar_header(bytes().first(4095)));
  ObjectRef longest = ref;
  longest.key = std::string(kSidecarHeaderBytes, 'k');
  while (!fits_sidecar(longest)) longest.key.pop_back();
  const auto fits = encode_sidecar_header(longest);
  ASSERT_TRUE(fits);
  EXPECT_EQ(parse_sidecar_header(std::as_bytes(std::span(fits->data(), fits->size())))->key, longest.key);
  longest.key += 'k';
  EXPECT_FALSE(encode_sidecar_header(longest));
}

TEST(RecordTest, ComesBackAndAnyBytesAreAValueOrAnError) {
  Record record;
  record.ref = make_ref("k", 9000);
  record.head = {RecordState::kOpen, 7, 12'288, 9000, 9000};
  record.crcs = {1, 2, 3};
  const std::string value = encode_record(record);
  const auto back = parse_record(record.ref.version, value);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->ref.key, "k");
  EXPECT_EQ(back->head.order, 7u);
  EXPECT_EQ(back->crcs, record.crcs);
  EXPECT_EQ(*parse_record_key(record_key(record.ref.version)), record.ref.version);
  EXPECT_FALSE(parse_record_key("o123"));
  for (std::size_t n = 0; n < value.size(); ++n)
    EXPECT_FALSE(parse_record(record.ref.version, std::string_view(value).substr(0, n))) << n;
  Rng rng(1);
  for (int i = 0; i < 5000; ++i) {
    std::string other = value;
    other[rng.below(other.size())] = static_cast<char>(rng.below(256));
    (void)parse_record(record.ref.version, other);
    (void)parse_record_head(random_bytes(rng.below(80), rng.next()));
  }
}

/// Runs fills one by one, each when told.
class FillSchedulerTest : public ::testing::Test {
 protected:
  FillPtr make(Priority priority, std::uint64_t owner = 1) {
    RequestContext c;
    c.priority = priority;
    const auto ref = make_ref("k" + std::to_string(++count_), 100);
    return std::make_shared<Fill>(std::make_shared<Entry>(ref), nullptr, owner, 0, c);
  }
  FillPtr submit(FillScheduler& scheduler, Priority priority, std::uint64_t owner = 1) {
    auto fill = make(priority, owner);
    EXPECT_TRUE(scheduler.submit(fill, priority));
    return fill;
  }
  void run(const FillPtr& fill) {
    std::unique_lock lock(mutex_);
    order_.push_back(fill);
    changed_.notify_all();
    while (!open_ && !fill->stop.stop_requested()) changed_.wait_for(lock, std::chrono::milliseconds(5));
  }
  void wait_for(std::size_t running) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(10), [&] { return order_.size() >= running; }));
  }
  void open_gate() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<FillPtr> order_;
  bool open_ = false;
  int count_ = 0;
};

TEST_F(FillSchedulerTest, UrgentFirstPromotedOnesWithThemRemovedOnesNever) {
  FillScheduler scheduler(1, [this](const FillPtr& fill) { run(fill); });
  const auto first = submit(scheduler, Priority::kPrefetch);
  wait_for(1);
  const auto ahead = submit(scheduler, Priority::kPrefetch, 2);
  const auto wanted = submit(scheduler, Priority::kPrefetch, 2);
  const auto dropped = submit(scheduler, Priority::kPrefetch, 3);
  const auto urgent = submit(scheduler, Priority::kForeground);
  scheduler.promote(wanted, Priority::kForeground);
  EXPECT_EQ(scheduler.queued_of(2).size(), 2u);
  EXPECT_TRUE(scheduler.remove(dropped));
  EXPECT_FALSE(scheduler.remove(dropped));
  EXPECT_FALSE(scheduler.remove(first));  // it runs
  open_gate();
  wait_for(4);
  EXPECT_EQ(order_, (std::vector<FillPtr>{first, urgent, wanted, ahead}));
}

TEST_F(FillSchedulerTest, AThreadIsKeptForReadersWhoWait) {
  FillScheduler scheduler(4, [this](const FillPtr& fill) { run(fill); });
  for (int i = 0; i < 6; ++i) (void)submit(scheduler, Priority::kPrefetch);
  wait_for(3);
  const auto urgent = submit(scheduler, Priority::kForeground);
  wait_for(4);
  {
    std::lock_guard lock(mutex_);
    EXPECT_EQ(order_.back(), urgent);
  }
  const auto left = scheduler.stop();
  EXPECT_EQ(left.size(), 3u);
  EXPECT_FALSE(scheduler.submit(make(Priority::kForeground), Priority::kForeground));
  scheduler.join(Nanos::zero());  // fires the stop tokens of what runs
}

}  // namespace
}  // namespace thermo::cache::testing
