// Values without threads: sizes, durations, checksums, hashes, random numbers.

#include <gtest/gtest.h>

#include <set>

#include "base/crc32c.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/units.h"

namespace thermo {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

TEST(Units, Sizes) {
  const std::pair<const char*, std::uint64_t> good[] = {{"0", 0},
                                                        {"1048576", 1048576},
                                                        {"1B", 1},
                                                        {"64KiB", 65536},
                                                        {"64K", 65536},
                                                        {"4MB", 4'000'000},
                                                        {"200GiB", 214748364800},
                                                        {"1.5 GiB", 1610612736},
                                                        {"1TiB", 1099511627776},
                                                        {"1.6TiB", 1759218604442},
                                                        {"3PiB", 3377699720527872},
                                                        {"0.5K", 512},
                                                        {"9007199254740993", 9007199254740993},
                                                        {"9223372036854775807", 9223372036854775807}};
  for (const auto& [text, bytes] : good) {
    const auto size = parse_size(text);
    ASSERT_TRUE(size) << text;
    EXPECT_EQ(*size, bytes) << text;
  }
  for (const char* bad : {"", "x", "GiB", "-1", "1,5GiB", "1.2.3", ".", "1 Gib", "10XB", "99999999999PiB", "1e3", "0x10", "inf",
                          "nan", "+1", " 1", "1 K B"}) {
    const auto size = parse_size(bad);
    ASSERT_FALSE(size) << bad;
    EXPECT_EQ(size.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(size.error().message().find("'" + std::string(bad) + "'"), std::string::npos) << "names the text";
    EXPECT_NE(size.error().message().find("GiB"), std::string::npos) << "names the units";
  }
}

TEST(Units, RatesAndDurations) {
  EXPECT_EQ(*parse_rate("90MB/s"), 90'000'000U);
  EXPECT_EQ(*parse_rate("90MB"), 90'000'000U);
  EXPECT_EQ(parse_rate("fast/s").error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(parse_rate("fast/s").error().message().find("'fast/s'"), std::string::npos);
  EXPECT_EQ(*parse_duration("60s"), std::chrono::seconds(60));
  EXPECT_EQ(*parse_duration("25ms"), std::chrono::milliseconds(25));
  EXPECT_EQ(*parse_duration("5m"), std::chrono::minutes(5));
  EXPECT_EQ(*parse_duration("1.5h"), std::chrono::minutes(90));
  EXPECT_EQ(*parse_duration("30d"), std::chrono::hours(720));
  EXPECT_EQ(*parse_duration("0s"), Nanos(0));
  for (const char* bad : {"60", "", "s", "-1s", "1w", "999999999d", "1 day"}) EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(Units, ShownSizesAndTimes) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(1536), "1.5 KiB");
  EXPECT_EQ(format_size(std::uint64_t{3} << 40), "3.0 TiB");
  EXPECT_EQ(format_size(~std::uint64_t{0}), "16384.0 PiB");
  EXPECT_EQ(format_duration(Nanos(999)), "999 ns");
  EXPECT_EQ(format_duration(std::chrono::milliseconds(25)), "25.0 ms");
  EXPECT_EQ(format_duration(std::chrono::milliseconds(1250)), "1.25 s");
  EXPECT_EQ(format_duration(std::chrono::hours(2)), "120 min");
}

// Vectors of RFC 3720, appendix B.4, and the usual check value.
TEST(Crc32c, PublishedVectors) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283U);
  EXPECT_EQ(crc32c({}), 0U);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))), 0x8a9136aaU);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\xff'))), 0x62a8ab43U);
  std::string up;
  for (int i = 0; i < 32; ++i) up += static_cast<char>(i);
  EXPECT_EQ(crc32c(bytes_of(up)), 0x46dd794eU);
  EXPECT_EQ(crc32c(bytes_of(std::string(up.rbegin(), up.rend()))), 0x113fdb5cU);
}

// Bit by bit, as the definition says: at every alignment and length.
TEST(Crc32c, AgreesWithTheDefinition) {
  Rng rng(1);
  for (int run = 0; run < 300; ++run) {
    std::string text(rng.below(700), '\0');
    for (auto& c : text) c = static_cast<char>(rng.next());
    const auto whole = std::string_view(text).substr(rng.below(text.size() + 1));
    std::uint32_t state = ~0U;
    for (const char c : whole) {
      state ^= static_cast<unsigned char>(c);
      for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ (0x82f63b78U & (0U - (state & 1U)));
    }
    EXPECT_EQ(crc32c(bytes_of(whole)), ~state);
  }
}

TEST(Crc32c, ContinuesAndCombines) {
  Rng rng(2);
  for (int run = 0; run < 500; ++run) {
    std::string text(rng.below(20'000), '\0');
    for (auto& c : text) c = static_cast<char>(rng.next());
    const std::size_t cut = rng.below(text.size() + 1);
    const auto a = std::string_view(text).substr(0, cut);
    const auto b = std::string_view(text).substr(cut);
    const auto whole = crc32c(bytes_of(text));
    EXPECT_EQ(crc32c(bytes_of(b), crc32c(bytes_of(a))), whole);
    EXPECT_EQ(crc32c_combine(crc32c(bytes_of(a)), crc32c(bytes_of(b)), b.size()), whole) << text.size() << " cut at " << cut;
  }
}

// Values are on disks: they may not change.
TEST(Hash, IsPartOfTheFormat) {
  EXPECT_EQ(hash128("").hex(), "99aa06d3014798d86001c324468d497f");  // XXH3-128 of nothing, as xxHash publishes it
  EXPECT_EQ(hash64(""), 0x2d06800538d394c2U);
  EXPECT_NE(hash128("a"), hash128("b"));
  Rng rng(3);
  for (int i = 0; i < 100; ++i) {
    const Hash128 hash{rng.next(), rng.next()};
    EXPECT_EQ(Hash128::from_hex(hash.hex()), hash);
  }
  EXPECT_EQ((Hash128{0x0123456789abcdefU, 1}).hex(), "0123456789abcdef0000000000000001");
  for (const std::string& bad :
       {std::string(), std::string(31, '0'), std::string(33, '0'), std::string(31, '0') + "g", std::string(31, '0') + "A"}) {
    EXPECT_FALSE(Hash128::from_hex(bad)) << bad;
  }
}

TEST(Rng, ASeedDecidesEverything) {
  EXPECT_EQ(Rng(0).next(), 0xe220a8397b1dcdafU);  // splitmix64's published first value
  Rng a(42);
  Rng b(42);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.next(), b.next());
  EXPECT_NE(Rng::from_os().next(), Rng::from_os().next());
}

TEST(Rng, RangesAreKept) {
  Rng rng(7);
  std::set<std::uint64_t> seen;
  double sum = 0;
  int hits = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto n = rng.below(7);
    ASSERT_LT(n, 7U);
    seen.insert(n);
    const double u = rng.unit();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    if (rng.chance(0.25)) ++hits;
    ASSERT_FALSE(rng.chance(0));
    ASSERT_TRUE(rng.chance(1));
  }
  EXPECT_EQ(seen.size(), 7U);
  EXPECT_NEAR(sum / 20'000, 0.5, 0.01);
  EXPECT_NEAR(hits / 20'000.0, 0.25, 0.02);
  const auto hex = rng.hex(9);
  EXPECT_EQ(hex.size(), 9U);
  EXPECT_EQ(hex.find_first_not_of("0123456789abcdef"), std::string::npos);
}

}  // namespace
}  // namespace thermo
