#include "read/prefetch_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/rng.h"

namespace thermo::read {
namespace {

using cache::ByteRange;
constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kPlenty = 1u << 30;

/// Pages of an object: how often each was asked for by the window, and which were read.
class Ledger {
 public:
  explicit Ledger(std::uint64_t size) : size_(size), asked_((size + kMiB - 1) / kMiB), read_(asked_.size()) {}
  void asked(ByteRange r) {
    if (r.length == 0) return;
    ASSERT_LE(r.end(), size_);
    EXPECT_EQ(r.offset % kMiB, 0u);
    EXPECT_TRUE(r.end() % kMiB == 0 || r.end() == size_);
    for (std::uint64_t p = r.offset / kMiB; p * kMiB < r.end(); ++p) ++asked_[p];
  }
  void read(ByteRange r) {
    for (std::uint64_t p = r.offset / kMiB; p * kMiB < r.end(); ++p) read_[p] = true;
  }
  [[nodiscard]] std::size_t fetched() const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < asked_.size(); ++i) n += asked_[i] > 0 || read_[i];
    return n;
  }
  [[nodiscard]] std::size_t touched() const { return static_cast<std::size_t>(std::count(read_.begin(), read_.end(), true)); }
  [[nodiscard]] int most_asked() const { return *std::max_element(asked_.begin(), asked_.end()); }
  [[nodiscard]] std::size_t asked_pages() const {
    return static_cast<std::size_t>(std::count_if(asked_.begin(), asked_.end(), [](int n) { return n > 0; }));
  }

 private:
  std::uint64_t size_;
  std::vector<int> asked_;
  std::vector<bool> read_;
};

TEST(PrefetchWindow, FirstReadAtTheFrontAsksForTheFirstWindow) {
  PrefetchWindow w(512 * kMiB, {});
  EXPECT_EQ(w.on_read({0, 128 << 10}, true, kPlenty), (ByteRange{0, 2 * kMiB}));  // 1.125 MiB in whole pages
}

TEST(PrefetchWindow, SmallObjectComesWholeAtTheFirstReadWhereverThatIs) {
  const std::uint64_t size = kMiB + (128u << 10);
  PrefetchWindow w(size, {});
  EXPECT_EQ(w.on_read({size - 8, 8}, true, kPlenty), (ByteRange{0, size}));
  EXPECT_EQ(w.on_read({0, 4096}, false, kPlenty).length, 0u);
}

TEST(PrefetchWindow, ReadsOutsideTheObjectSayNothing) {
  PrefetchWindow w(3 * kMiB, {});
  EXPECT_EQ(w.on_read({3 * kMiB, 4096}, true, kPlenty).length, 0u);
  EXPECT_EQ(w.on_read({0, 0}, true, kPlenty).length, 0u);
  EXPECT_EQ(w.on_read({2 * kMiB, 9 * kMiB}, true, kPlenty), (ByteRange{2 * kMiB, kMiB}));
}

TEST(PrefetchWindow, NoStallNoGrowth) {
  PrefetchWindow w(512 * kMiB, {});
  std::uint64_t furthest = 0;
  for (std::uint64_t at = 0; at < 100 * kMiB; at += 256 << 10) {
    const auto ask = w.on_read({at, 256 << 10}, at == 0, kPlenty);
    furthest = std::max(furthest, ask.end());
    EXPECT_LE(furthest, at + 10 * kMiB);  // the window, rounded up to the next whole GET
  }
  EXPECT_EQ(w.window(), Options{}.first_window);
}

TEST(PrefetchWindow, StallsGrowItToTheLimitAndNotBeyond) {
  Options options;
  options.max_window = 64 * kMiB;
  PrefetchWindow w(1024 * kMiB, options);
  std::uint64_t furthest = 0;
  for (std::uint64_t at = 0; at < 512 * kMiB; at += kMiB) {
    furthest = std::max(furthest, w.on_read({at, kMiB}, true, kPlenty).end());
    EXPECT_LE(furthest, at + kMiB + 64 * kMiB + 8 * kMiB);
  }
  EXPECT_EQ(w.window(), 64 * kMiB);
}

TEST(PrefetchWindow, AStreamInsideAFileHasToProveMore) {
  PrefetchWindow front(512 * kMiB, {}), inside(512 * kMiB, {});
  for (std::uint64_t i = 0; i < 4; ++i) {
    (void)front.on_read({i * kMiB, kMiB}, true, kPlenty);
    (void)inside.on_read({200 * kMiB + i * kMiB, kMiB}, true, kPlenty);
  }
  EXPECT_GE(front.window(), 32 * kMiB);
  EXPECT_LE(inside.window(), 16 * kMiB);
}

TEST(PrefetchWindow, HeaderProbeInsideTouchesOnePage) {
  PrefetchWindow w(512 * kMiB, {});
  EXPECT_EQ(w.on_read({100 * kMiB + 5, 4096}, true, kPlenty).length, 0u);
  // The page that follows the header is read in order: from now on it is a stream.
  const auto ask = w.on_read({100 * kMiB + 4101, 256 << 10}, true, kPlenty);
  EXPECT_EQ(ask.offset, 101 * kMiB);
  EXPECT_GE(ask.length, kMiB);
}

TEST(PrefetchWindow, MemoryThatIsNotThereIsNotAskedFor) {
  PrefetchWindow w(512 * kMiB, {});
  EXPECT_EQ(w.on_read({0, kMiB}, true, 0).length, 0u);
  EXPECT_EQ(w.on_read({kMiB, kMiB}, true, kMiB - 1).length, 0u);
  EXPECT_EQ(w.on_read({2 * kMiB, kMiB}, true, 3 * kMiB).length, 0u);          // wide by now: waits for a whole GET
  EXPECT_EQ(w.starved({2 * kMiB, kMiB}, true), (ByteRange{kMiB, 7 * kMiB}));  // with the page before it that nobody asked for
}

TEST(PrefetchWindow, WhatTheCacheDroppedIsAskedForAgain) {
  PrefetchWindow w(512 * kMiB, {});
  (void)w.on_read({0, kMiB}, true, kPlenty);
  const auto ask = w.on_read({kMiB, kMiB}, true, kPlenty);
  ASSERT_EQ(ask, (ByteRange{2 * kMiB, 6 * kMiB}));
  w.on_dropped(ask, 2 * kMiB + 17);
  EXPECT_EQ(w.on_read({2 * kMiB, kMiB}, true, kPlenty).offset, 4 * kMiB);
}

TEST(PrefetchWindow, BackwardScanIsRandom) {
  PrefetchWindow w(256 * kMiB, {});
  Ledger ledger(256 * kMiB);
  for (std::uint64_t at = 255 * kMiB; at >= 100 * kMiB; at -= 128 << 10) {
    ledger.asked(w.on_read({at, 128 << 10}, true, kPlenty));
    ledger.read({at, 128 << 10});
  }
  EXPECT_TRUE(w.is_random());
  EXPECT_LE(ledger.fetched(), ledger.touched() + 1);
}

TEST(PrefetchWindow, RandomTurnsItOffAndReadingInOrderOnAgain) {
  PrefetchWindow w(1024 * kMiB, {});
  for (std::uint64_t at : {900u, 100u, 500u, 300u, 700u}) (void)w.on_read({at * kMiB, 256 << 10}, true, kPlenty);
  EXPECT_TRUE(w.is_random());
  EXPECT_EQ(w.on_read({800 * kMiB, 256 << 10}, true, kPlenty).length, 0u);
  EXPECT_EQ(w.on_read({800 * kMiB + (256 << 10), 256 << 10}, true, kPlenty).length, 0u);
  EXPECT_GT(w.on_read({800 * kMiB + (512 << 10), 512 << 10}, true, kPlenty).length, 0u);
  EXPECT_FALSE(w.is_random());
}

TEST(PrefetchWindow, ForwardSeekInsideTheWindowStaysInTheStream) {
  PrefetchWindow w(1024 * kMiB, {});
  for (std::uint64_t at = 0; at < 64 * kMiB; at += kMiB) (void)w.on_read({at, kMiB}, true, kPlenty);
  const auto earned = w.window();
  (void)w.on_read({76 * kMiB, kMiB}, false, kPlenty);
  EXPECT_EQ(w.window(), earned);
  (void)w.on_read({76 * kMiB + (512 << 10), 128 << 10}, false, kPlenty);  // half a MiB back
  EXPECT_EQ(w.window(), earned);
  (void)w.on_read({500 * kMiB, kMiB}, true, kPlenty);  // far away: starts from the beginning
  EXPECT_EQ(w.window(), Options{}.first_window);
}

TEST(PrefetchWindow, ColumnChunksReadInTurnAreStreamsEach) {
  PrefetchWindow w(1024 * kMiB, {});
  std::map<std::uint64_t, std::uint64_t> got;  // chunk -> bytes asked in it
  for (std::uint64_t step = 0; step < 32; ++step) {
    for (std::uint64_t chunk = 0; chunk < 8; ++chunk) {
      const auto ask = w.on_read({chunk * 100 * kMiB + step * (256 << 10), 256 << 10}, true, kPlenty);
      if (ask.length > 0) {
        EXPECT_EQ(ask.offset / (100 * kMiB), chunk);
        got[chunk] += ask.length;
      }
    }
  }
  EXPECT_FALSE(w.is_random());
  for (std::uint64_t chunk = 0; chunk < 8; ++chunk) EXPECT_GE(got[chunk], 8 * kMiB) << chunk;
}

class SeededWindow : public testing::TestWithParam<std::uint64_t> {};

// Reads everything once, with requests of mixed sizes that overtake each other a little, random stalls, any file size.
TEST_P(SeededWindow, SequentialAsksForEverythingExactlyOnce) {
  for (std::uint64_t round = 0; round < 250; ++round) {
    Rng rng(GetParam() * 1000 + round);
    const std::uint64_t size = 1 + rng.below(200 * kMiB);
    PrefetchWindow w(size, {});
    Ledger ledger(size);
    std::vector<ByteRange> reads;
    for (std::uint64_t at = 0; at < size;) {
      const std::uint64_t n = std::min(size - at, std::uint64_t{4096} << rng.below(9));
      reads.push_back({at, n});
      at += n;
    }
    const bool shuffled = rng.chance(0.5);
    for (std::size_t i = 1; shuffled && i + 1 < reads.size(); i += 2) {
      if (rng.chance(0.4)) std::swap(reads[i], reads[i + 1]);
    }
    const double stall = rng.unit();
    for (const auto& r : reads) {
      ledger.asked(w.on_read(r, rng.chance(stall), kPlenty));
      ledger.read(r);
      ASSERT_LE(w.window(), Options{}.max_window);
    }
    ASSERT_FALSE(w.is_random());
    ASSERT_EQ(ledger.most_asked(), 1) << "overlap, round " << round;
    ASSERT_EQ(ledger.fetched(), (size + kMiB - 1) / kMiB);
    ASSERT_GE(ledger.asked_pages() + 2, ledger.fetched()) << "gap, round " << round;
    if (!shuffled) {
      ASSERT_EQ(ledger.asked_pages(), ledger.fetched()) << "gap, round " << round;
    }
  }
}

TEST_P(SeededWindow, RandomSmallReadsFetchOnlyPagesTouched) {
  for (std::uint64_t round = 0; round < 250; ++round) {
    Rng rng(GetParam() * 1000 + round);
    const std::uint64_t size = 64 * kMiB + rng.below(4096 * kMiB);
    PrefetchWindow w(size, {});
    Ledger ledger(size);
    for (int i = 0; i < 200; ++i) {
      const ByteRange r{rng.below(size / 4096) * 4096, 4096};
      ledger.asked(w.on_read(r, true, kPlenty));
      ledger.read(r);
    }
    ASSERT_LE(ledger.fetched(), ledger.touched() + 2);  // a first read at 0 may ask for one page more
  }
}

TEST_P(SeededWindow, StridesFetchLittleThatIsNotRead) {
  for (std::uint64_t round = 0; round < 250; ++round) {
    Rng rng(GetParam() * 1000 + round);
    const std::uint64_t size = 1024 * kMiB;
    const std::uint64_t length = std::uint64_t{4096} << rng.below(7);  // 4 KiB .. 256 KiB
    const std::uint64_t stride = length * (3 + rng.below(200));
    PrefetchWindow w(size, {});
    Ledger ledger(size);
    for (std::uint64_t at = rng.below(kMiB); at + length < size; at += stride) {
      ledger.asked(w.on_read({at, length}, true, kPlenty));
      ledger.read({at, length});
    }
    ASSERT_LE(ledger.fetched(), ledger.touched() + 4 * (1 + PrefetchWindow::kOffAfter)) << length << " every " << stride;
  }
}

// Whatever is read in whatever way: answers are whole pages inside the object, within memory and within the window of the reader.
TEST_P(SeededWindow, AnythingGoesWithinTheBounds) {
  for (std::uint64_t round = 0; round < 250; ++round) {
    Rng rng(GetParam() * 1000 + round);
    Options options;
    options.max_window = (2 + rng.below(100)) * kMiB;
    const std::uint64_t size = 1 + rng.below(600 * kMiB);
    PrefetchWindow w(size, options);
    Ledger ledger(size);
    std::uint64_t at = 0;
    for (int i = 0; i < 400; ++i) {
      const auto kind = rng.below(10);
      if (kind == 0) at = rng.below(size);
      else if (kind == 1) at += rng.below(20 * kMiB);
      else if (kind == 2) at -= std::min(at, rng.below(2 * kMiB));
      const ByteRange r{at, 1 + rng.below(kMiB)};
      const std::uint64_t available = rng.below(64 * kMiB);
      const auto ask = w.on_read(r, rng.chance(0.5), available);
      ledger.asked(ask);
      ASSERT_LE(ask.length, available);
      ASSERT_LE(w.window(), std::max(options.max_window, options.first_window));
      if (ask.length > 0 && size > options.first_window) {
        ASSERT_LE(ask.end(), r.end() + w.window() + 17 * kMiB);  // rounding, and a read that stepped back
        if (rng.chance(0.3)) w.on_dropped(ask, rng.below(ask.length));
      }
      at += r.length;
    }
  }
}

// A reader in order waits for memory rather than cut its GETs small: each costs a request.
TEST(PrefetchWindow, ScarceMemoryDoesNotCutGetsSmall) {
  const std::uint64_t size = 512 * kMiB;
  PrefetchWindow w(size, {});
  Ledger ledger(size);
  Rng rng(7);
  std::size_t gets = 0;
  const auto asked = [&](ByteRange ask) {
    ledger.asked(ask);
    if (ask.length > 0) gets += static_cast<std::size_t>((ask.end() + 8 * kMiB - 1) / (8 * kMiB) - ask.offset / (8 * kMiB));
  };
  std::uint64_t ahead = 0;
  for (std::uint64_t at = 0; at < size; at += kMiB) {
    const bool stalled = at >= ahead;
    // Plenty until the window is wide, then hardly any.
    const auto ask = w.on_read({at, kMiB}, stalled, at < 32 * kMiB ? kPlenty : rng.below(12 * kMiB));
    asked(ask);
    ahead = std::max(ahead, ask.end());
    if (!stalled || ask.length > 0) continue;
    const auto looked = w.starved({at, kMiB}, false);
    EXPECT_EQ(w.starved({at, kMiB}, true), looked);
    EXPECT_EQ(w.starved({at, kMiB}, false).length, 0u) << "asked for twice";
    asked(looked);
    ahead = std::max(ahead, looked.end());
  }
  EXPECT_LE(gets, 85u);  // 64 at best; before the window is wide it takes what there is
  EXPECT_EQ(ledger.most_asked(), 1);
}

TEST(PrefetchWindow, OnlyReadersInOrderStarve) {
  PrefetchWindow w(512 * kMiB, {});
  EXPECT_EQ(w.starved({0, kMiB}, false).length, 0u);
  (void)w.on_read({0, kMiB}, true, 0);
  EXPECT_EQ(w.starved({0, kMiB}, false).length, 0u);  // has not proved anything yet: takes what there is
}

INSTANTIATE_TEST_SUITE_P(Seeds, SeededWindow, testing::Values(1, 2, 3, 4));

// A reader with the kernel's read-ahead against a store with 25 ms to the first byte and 90 MB/s per connection.
TEST(PrefetchWindow, ReachesSixteenConnectionsInAboutThreeRoundTrips) {
  constexpr double kFirstByte = 0.025, kRate = 90e6, kCopy = 0.0002;
  const std::uint64_t size = 512 * kMiB;
  PrefetchWindow w(size, {});
  struct Get {
    ByteRange range;
    double start;
  };
  std::vector<Get> gets;
  const auto arrival = [&](std::uint64_t end) {
    double latest = 0;
    for (const auto& g : gets) {
      if (g.range.offset < end && end <= g.range.end())
        latest = g.start + kFirstByte + static_cast<double>(end - g.range.offset) / kRate;
    }
    return latest;
  };
  double now = 0, sixteen = 0;
  std::uint64_t at = 0, request = 256 << 10;
  while (at < size) {
    const ByteRange r{at, std::min(request, size - at)};
    const bool stalled = at == 0 || arrival(r.end()) > now || arrival(r.end()) == 0;
    const auto ask = w.on_read(r, stalled, kPlenty);
    for (std::uint64_t from = ask.offset; from < ask.end();) {
      const std::uint64_t to = std::min(ask.end(), (from / (8 * kMiB) + 1) * 8 * kMiB);
      gets.push_back({{from, to - from}, now});
      from = to;
    }
    const auto flying = std::count_if(gets.begin(), gets.end(), [&](const Get& g) { return arrival(g.range.end()) > now; });
    if (sixteen == 0 && flying >= 16) sixteen = now;
    now = std::max(now, arrival(r.end())) + kCopy;
    at = r.end();
    request = std::min<std::uint64_t>(request * 2, kMiB);
  }
  EXPECT_LE(gets.size(), 70u);
  EXPECT_GT(sixteen, 0.0);
  EXPECT_LE(sixteen, 0.080);
  RecordProperty("sixteen_us", static_cast<int>(sixteen * 1e6));
  RecordProperty("total_us", static_cast<int>(now * 1e6));
  EXPECT_LE(now, 0.6);  // 16 connections from the first moment on would need 0.4 s
}

}  // namespace
}  // namespace thermo::read
