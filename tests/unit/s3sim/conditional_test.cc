#include "s3sim/conditional.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "s3sim/backend.h"

namespace thermo::s3sim {
namespace {

void expect_range(std::string_view header, std::uint64_t size, std::uint64_t offset, std::uint64_t length, bool partial) {
  const auto got = resolve_range(header, size);
  ASSERT_TRUE(got) << header;
  EXPECT_EQ(got->offset, offset) << header;
  EXPECT_EQ(got->length, length) << header;
  EXPECT_EQ(got->partial, partial) << header;
}

TEST(Range, Partial) {
  expect_range("bytes=0-0", 11, 0, 1, true);
  expect_range("bytes=5-999", 11, 5, 6, true);
  expect_range("bytes=10-", 11, 10, 1, true);
  expect_range("bytes=-5", 11, 6, 5, true);
  expect_range("bytes=-500", 11, 0, 11, true);
  expect_range("bytes=0-99999999999999999999999", 11, 0, 11, true);
  expect_range(" bytes= 2 - 3 ", 11, 2, 2, true);
}

TEST(Range, UnsatisfiableIs416) {
  for (const auto* header : {"bytes=11-", "bytes=11-12", "bytes=-0", "bytes=99999999999999999999-"})
    EXPECT_FALSE(resolve_range(header, 11)) << header;
  EXPECT_FALSE(resolve_range("bytes=0-0", 0));
  EXPECT_FALSE(resolve_range("bytes=0-", 0));
}

TEST(Range, SuffixOfAnEmptyObjectIsTheWholeOfIt) { expect_range("bytes=-5", 0, 0, 0, false); }

TEST(Range, WhatS3IgnoresGivesTheWhole) {
  for (const auto* header : {"", "bytes=", "bytes=5-2", "bytes=a-b", "items=0-1", "bytes=0-1,3-4", "bytes=1", "bytes=--1", "0-1"})
    expect_range(header, 11, 0, 11, false);
}

TEST(Range, NeverLeavesTheObject) {
  Rng rng(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string header = "bytes=";
    for (std::uint64_t n = rng.below(8); n > 0; --n) header += "0123456789-,"[rng.below(12)];
    const std::uint64_t size = rng.below(200);
    if (const auto span = resolve_range(header, size)) {
      EXPECT_LE(span->offset + span->length, size) << header;
    }
  }
}

TEST(Etag, QuotesListsStarsAndWeakTags) {
  EXPECT_TRUE(etag_matches("\"ab\"", "\"ab\""));
  EXPECT_TRUE(etag_matches("ab", "\"ab\""));
  EXPECT_TRUE(etag_matches("*", "\"ab\""));
  EXPECT_TRUE(etag_matches("\"x\", W/\"ab\"", "\"ab\""));
  EXPECT_FALSE(etag_matches("\"abc\"", "\"ab\""));
  EXPECT_FALSE(etag_matches("", "\"ab\""));
}

net::ServerRequest with(std::vector<Header> headers) {
  net::ServerRequest request;
  request.headers = std::move(headers);
  return request;
}

TEST(Condition, OrderOfTheFourHeaders) {
  Object object;
  object.etag = "\"e\"";
  object.modified = *parse_http_time("Mon, 30 Nov 2026 22:02:38 GMT") * 1'000'000'000 + 999;
  const std::string same = "Mon, 30 Nov 2026 22:02:38 GMT", before = "Mon, 30 Nov 2026 22:02:37 GMT";
  EXPECT_EQ(check_read(with({}), object), Condition::kProceed);
  EXPECT_EQ(check_read(with({{"if-match", "\"x\""}}), object), Condition::kFailed);
  EXPECT_EQ(check_read(with({{"if-unmodified-since", before}}), object), Condition::kFailed);
  EXPECT_EQ(check_read(with({{"if-unmodified-since", same}}), object), Condition::kProceed);
  EXPECT_EQ(check_read(with({{"if-match", "\"e\""}, {"if-unmodified-since", before}}), object), Condition::kProceed);
  EXPECT_EQ(check_read(with({{"if-none-match", "\"e\""}}), object), Condition::kNotModified);
  EXPECT_EQ(check_read(with({{"if-modified-since", same}}), object), Condition::kNotModified);
  EXPECT_EQ(check_read(with({{"if-modified-since", before}}), object), Condition::kProceed);
  EXPECT_EQ(check_read(with({{"if-none-match", "\"x\""}, {"if-modified-since", same}}), object), Condition::kProceed);
  EXPECT_EQ(check_read(with({{"if-modified-since", "not a time"}}), object), Condition::kProceed);
}

TEST(Condition, TimesGoThereAndBack) {
  for (const WallNanos wall : {0LL, 951'782'400'000'000'000LL, 1'795'989'758'000'000'000LL})
    EXPECT_EQ(*parse_http_time(http_time(wall)) * 1'000'000'000, wall);
  EXPECT_EQ(iso_time(0), "1970-01-01T00:00:00.000Z");
  EXPECT_FALSE(parse_http_time("yesterday"));
}

TEST(Condition, OfWrites) {
  auto object = std::make_shared<Object>();
  object->etag = "\"e\"";
  EXPECT_TRUE(check_condition({}, nullptr, "k"));
  EXPECT_TRUE(check_condition({true, ""}, nullptr, "k"));
  EXPECT_EQ(check_condition({true, ""}, object, "k").error().status, 412);
  EXPECT_TRUE(check_condition({false, "e"}, object, "k"));
  EXPECT_EQ(check_condition({false, "x"}, object, "k").error().status, 412);
  EXPECT_EQ(check_condition({false, "e"}, nullptr, "k").error().code, "NoSuchKey");
}

}  // namespace
}  // namespace thermo::s3sim
