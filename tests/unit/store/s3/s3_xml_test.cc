// List, error and delete documents, well-formed and not; dates; checksums.

#include "store/s3/s3_xml.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "store/s3/s3_body.h"
#include "store/s3/s3_checksum.h"
#include "store/s3/s3_dates.h"
#include "unit/store/s3/s3_testing.h"

namespace thermo::store {
namespace {

using testing::checksum_of;

const std::string kPage = R"(<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Name>b</Name><Prefix>dt%3D1%2F</Prefix><MaxKeys>1000</MaxKeys><EncodingType>url</EncodingType>
  <IsTruncated>true</IsTruncated><NextContinuationToken>a+b/c==%2F</NextContinuationToken>
  <Contents><Key>a+b%2Bc%25%C3%A9</Key><LastModified>2026-11-30T22:02:38.123Z</LastModified><ETag>&quot;abc-2&quot;</ETag><Size>5368709120000</Size>
    <StorageClass>GLACIER</StorageClass></Contents>
  <Contents><Key>b%01%0A</Key><LastModified>2026-11-30T22:02:38Z</LastModified><ETag>noquotes</ETag><Size>0</Size><StorageClass>STANDARD</StorageClass></Contents>
  <CommonPrefixes><Prefix>dt%3D1%2F</Prefix></CommonPrefixes><CommonPrefixes><Prefix>x+y/</Prefix></CommonPrefixes>
</ListBucketResult>)";

TEST(ParseListPage, DecodesAllThatIsEncodedAndNotTheToken) {
  auto page = parse_list_page(kPage);
  ASSERT_TRUE(page) << page.error().describe();
  ASSERT_EQ(page->objects.size(), 2U);
  EXPECT_EQ(page->objects[0].key, "a b+c%\xC3\xA9");
  EXPECT_EQ(page->objects[0].etag, "\"abc-2\"");
  EXPECT_EQ(page->objects[0].size, 5368709120000U);
  EXPECT_EQ(page->objects[0].storage_class, "GLACIER");
  EXPECT_EQ(page->objects[0].mtime, 1796076158123000000);
  EXPECT_EQ(page->objects[1].key, "b\x01\n");
  EXPECT_EQ(page->objects[1].etag, "\"noquotes\"");
  EXPECT_EQ(page->objects[1].storage_class, "");
  EXPECT_EQ(page->prefixes, (std::vector<std::string>{"dt=1/", "x y/"}));
  EXPECT_TRUE(page->truncated);
  EXPECT_EQ(page->continuation, "a+b/c==%2F");
}

TEST(ParseListPage, PlainKeysStayAsTheyAreAndAreSorted) {
  auto page = parse_list_page(
      "<ListBucketResult><IsTruncated>false</IsTruncated><NextContinuationToken>left-over</NextContinuationToken>"
      "<Contents><Key>z%20&amp;\r\n</Key><Size>1</Size><ETag>e</ETag></Contents><Contents><Key>a+b</Key><Size>2</Size><ETag>e</"
      "ETag></Contents>"
      "<Contents><Key> </Key><Size>3</Size><ETag>e</ETag></Contents></ListBucketResult>");
  ASSERT_TRUE(page) << page.error().describe();
  ASSERT_EQ(page->objects.size(), 3U);
  EXPECT_EQ(page->objects[0].key, " ");
  EXPECT_EQ(page->objects[1].key, "a+b");
  EXPECT_EQ(page->objects[2].key, "z%20&\r\n");
  EXPECT_FALSE(page->truncated);
  EXPECT_EQ(page->continuation, "");
}

TEST(ParseListPage, RefusesWhatIsNoListing) {
  const auto entry = [](const std::string& inside) {
    return "<ListBucketResult><EncodingType>url</EncodingType>" + inside + "</ListBucketResult>";
  };
  const std::vector<std::string> bad = {
      "",
      "not xml",
      "<html/>",
      "<ListBucketResult><Contents>",
      entry("<Contents><Size>1</Size></Contents>"),
      entry("<Contents><Key>k</Key><Size>x</Size></Contents>"),
      entry("<Contents><Key>k</Key><Size>-1</Size></Contents>"),
      entry("<Contents><Key>k</Key><Size>99999999999999999999</Size></Contents>"),
      entry("<Contents><Key>%zz</Key><Size>1</Size></Contents>"),
      entry("<CommonPrefixes><Prefix></Prefix></CommonPrefixes>"),
      entry("<IsTruncated>true</IsTruncated>"),
      std::string((16U << 20U) + 1, ' '),
  };
  for (const auto& xml : bad) {
    auto page = parse_list_page(xml);
    ASSERT_FALSE(page) << xml.substr(0, 100);
    EXPECT_EQ(page.error().code(), ErrorCode::kCorrupt);
  }
}

TEST(ParseListPage, DamagedAndNestedInputNeverCrashes) {
  Rng rng(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string xml = kPage;
    for (std::uint64_t n = 1 + rng.below(4); n > 0; --n) {
      const auto at = static_cast<std::size_t>(rng.below(xml.size()));
      if (rng.chance(0.3)) {
        xml.erase(at, static_cast<std::size_t>(rng.below(40)));
      } else {
        xml[at] = static_cast<char>(rng.below(256));
      }
    }
    const auto page = parse_list_page(xml);
    EXPECT_TRUE(!page || page->truncated == !page->continuation.empty());
    static_cast<void>(parse_error_body(xml));
    static_cast<void>(parse_delete_result(xml));
  }
  std::string deep;
  for (int i = 0; i < 200'000; ++i) deep += "<a>";
  EXPECT_FALSE(parse_list_page(deep));
}

TEST(ErrorBody, FieldsOrNothing) {
  auto body = parse_error_body(
      "<?xml version=\"1.0\"?>\n<Error><Code>SlowDown</Code><Message>less &lt;please&gt;</Message><RequestId>R</RequestId>"
      "<Region>eu-west-1</Region></Error>");
  ASSERT_TRUE(body);
  EXPECT_EQ(body->code, "SlowDown");
  EXPECT_EQ(body->message, "less <please>");
  EXPECT_EQ(body->request_id, "R");
  EXPECT_EQ(body->region, "eu-west-1");
  EXPECT_FALSE(parse_error_body(""));
  EXPECT_FALSE(parse_error_body("<html><body>502</body></html>"));
}

TEST(DeleteDocument, EscapesAndKnowsWhatXmlCannotCarry) {
  EXPECT_NE(delete_document({"a&b<c>\r\n\t"}).find("<Key>a&amp;b&lt;c&gt;&#13;&#10;&#9;</Key>"), std::string::npos);
  for (const char* good : {"", "plain", "tab\t", "\xC3\xA9", "\xE6\x97\xA5", "\xF0\x9F\x98\x80"})
    EXPECT_TRUE(fits_xml(good)) << good;
  for (const char* bad : {"\x01", "a\x1f", "\xC3", "\xC0\x80", "\xFF", "\xED\xA0\x80", "\xEF\xBF\xBF", "\xF5\x80\x80\x80",
                          "\xE0\x80\x80", "\x80"}) {
    EXPECT_FALSE(fits_xml(bad)) << bad;
  }
  EXPECT_FALSE(fits_xml(std::string("a\0b", 3)));
}

TEST(Dates, BothForms) {
  EXPECT_EQ(parse_iso_date("1970-01-01T00:00:01Z"), 1'000'000'000);
  EXPECT_EQ(parse_iso_date("1970-01-01T00:00:00.000000001Z"), 1);
  EXPECT_EQ(parse_iso_date("1970-01-01T00:00:00.5+00:00"), 500'000'000);
  EXPECT_EQ(parse_http_date("Mon, 30 Nov 2026 22:02:38 GMT"), 1796076158000000000);
  for (const char* bad : {"", "2026-11-30", "2026-13-30T22:02:38Z", "2026-11-31T22:02:38Z", "2026-11-30T24:02:38Z",
                          "2026-11-30T22:02:38", "x026-11-30T22:02:38Z", "2026-11-30T22:02:38.1+01:00"}) {
    EXPECT_FALSE(parse_iso_date(bad)) << bad;
  }
  for (const char* bad : {"", "Mon", "Mon, 30 Foo 2026 22:02:38 GMT", "Mon, 30 Nov 2026 22:02:38 CET",
                          "Mon, 3 Nov 2026 22:02:38 GMT", "Mon, 31 Nov 2026 22:02:38 GMT"}) {
    EXPECT_FALSE(parse_http_date(bad)) << bad;
  }
}

TEST(ContentRangeHeader, StrictForm) {
  auto range = parse_content_range("bytes 5-9/100");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->range, (ByteRange{5, 5}));
  EXPECT_EQ(range->total, 100U);
  for (const char* bad : {"", "5-9/100", "bytes 9-5/100", "bytes 5-100/100", "bytes 5-9/*", "bytes */100", "bytes 5-9",
                          "bytes 5-9/100x", "bytes -5-9/100"}) {
    EXPECT_FALSE(parse_content_range(bad)) << bad;
  }
}

TEST(Checksums, CheckValues) {
  const std::string_view text = "123456789";
  EXPECT_EQ(crc64nvme(text), 0xae8b14860a799888ULL);
  EXPECT_EQ(crc64nvme(""), 0U);
  EXPECT_EQ(checksum_of("crc64nvme", text), "rosUhgp5mIg=");
  EXPECT_EQ(checksum_of("crc32", text), "y/Q5Jg==");
  EXPECT_EQ(checksum_of("crc32c", text), "4waSgw==");
  EXPECT_EQ(checksum_of("sha1", ""), "2jmj7l5rSw0yVb/vlWAYkK/YBwk=");
  EXPECT_EQ(checksum_of("sha256", ""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
  EXPECT_EQ(md5_base64(""), "1B2M2Y8AsgTpgAmY7PhCfg==");
  // Every split of the loop into eights and rest, against the slow way.
  std::string bytes;
  for (int i = 0; i < 40; ++i) {
    std::uint64_t crc = ~std::uint64_t{0};
    for (const char c : bytes) {
      crc ^= static_cast<unsigned char>(c);
      for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? (crc >> 1U) ^ 0x9A6C9329AC4BC9B5ULL : crc >> 1U;
    }
    EXPECT_EQ(crc64nvme(bytes), ~crc) << i;
    bytes += static_cast<char>(i * 37);
  }
}

TEST(ParseListPage, SizesBeyondAnyOffsetAreRefused) {
  const auto page = [](const std::string& size) {
    return parse_list_page("<ListBucketResult><Contents><Key>k</Key><Size>" + size + "</Size></Contents></ListBucketResult>");
  };
  EXPECT_EQ(page("9223372036854775807")->objects[0].size, 9223372036854775807U);
  for (const char* size : {"9223372036854775808", "18446744073709551615", "18446744073709551616", "-1", "1.5", ""}) {
    const auto refused = page(size);
    ASSERT_FALSE(refused) << size;
    EXPECT_EQ(refused.error().code(), ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace thermo::store
