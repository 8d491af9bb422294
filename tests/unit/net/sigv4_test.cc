// Signing against AWS's published S3 examples, encoding and dates.

#include "net/sigv4.h"

#include <gtest/gtest.h>

namespace thermo::net {
namespace {

const AccessKey kKey{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};

SigningInput example(std::string method, std::string path, std::vector<Header> headers, const std::string& hash = kEmptySha256) {
  SigningInput input;
  input.method = std::move(method);
  input.encoded_path = std::move(path);
  input.headers = std::move(headers);
  input.headers.emplace_back("Host", "examplebucket.s3.amazonaws.com");
  input.headers.emplace_back("x-amz-content-sha256", hash);
  input.headers.emplace_back("x-amz-date", "20130524T000000Z");
  input.payload_hash = hash;
  input.region = "us-east-1";
  input.amz_date = "20130524T000000Z";
  return input;
}

TEST(SigV4, PublishedGetWithRange) {
  const auto input = example("GET", "/test.txt", {{"Range", "bytes=0-9"}});
  EXPECT_EQ(sha256_hex(canonical_request(input)), "7344ae5b7ee6c3e7e6b0fe0640412a37625d1fbfff95c48bbb2dc43964946972");
  EXPECT_EQ(signature(input, kKey), "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_EQ(authorization(input, kKey),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;range;"
            "x-amz-content-sha256;x-amz-date,Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(SigV4, PublishedPut) {
  const std::string hash = sha256_hex("Welcome to Amazon S3.");
  EXPECT_EQ(hash, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
  const auto input = example("PUT", "/test%24file.text",
                             {{"Date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}}, hash);
  EXPECT_EQ(signature(input, kKey), "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(SigV4, PublishedSubresourceWithoutValue) {
  auto input = example("GET", "/", {});
  input.query = {{"lifecycle", ""}};
  EXPECT_EQ(signature(input, kKey), "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST(SigV4, PublishedListWithUnsortedQuery) {
  auto input = example("GET", "", {});
  input.query = {{"prefix", "J"}, {"max-keys", "2"}};
  EXPECT_EQ(signature(input, kKey), "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(SigV4, PublishedPresignedGet) {
  SigningInput input;
  input.method = "GET";
  input.encoded_path = "/test.txt";
  input.query = {{"X-Amz-Algorithm", "AWS4-HMAC-SHA256"},
                 {"X-Amz-Credential", "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"},
                 {"X-Amz-Date", "20130524T000000Z"},
                 {"X-Amz-Expires", "86400"},
                 {"X-Amz-SignedHeaders", "host"}};
  input.headers = {{"host", "examplebucket.s3.amazonaws.com"}};
  input.payload_hash = kUnsignedPayload;
  input.region = "us-east-1";
  input.amz_date = "20130524T000000Z";
  EXPECT_EQ(signature(input, kKey), "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

TEST(SigV4, HeadersAreFoldedSortedAndJoined) {
  auto a = example("GET", "/", {{"X-Amz-Meta-B", "  two   words\t "}, {"x-amz-meta-a", "1"}, {"X-Amz-Meta-A", "2"}});
  const auto text = canonical_request(a);
  EXPECT_NE(text.find("\nx-amz-meta-a:1,2\nx-amz-meta-b:two words\n"), std::string::npos) << text;
  EXPECT_NE(text.find("x-amz-date;x-amz-meta-a;x-amz-meta-b\n"), std::string::npos) << text;
}

TEST(SigV4, QueryIsSortedAfterEncoding) {
  auto input = example("GET", "/", {});
  // Raw ':' (0x3a) sorts behind '1', its escape '%3A' before it.
  input.query = {{"p", "1"}, {"p", ":"}, {"a b", "x/y"}};
  EXPECT_NE(canonical_request(input).find("\na%20b=x%2Fy&p=%3A&p=1\n"), std::string::npos) << canonical_request(input);
}

TEST(UriCoding, EncodesAllButUnreserved) {
  EXPECT_EQ(uri_encode("dt=2024/a b+%2F?\xC3\xA9~-_.", true), "dt%3D2024/a%20b%2B%252F%3F%C3%A9~-_.");
  EXPECT_EQ(uri_encode("a/b", false), "a%2Fb");
  EXPECT_EQ(uri_encode(std::string("\0\n\xff", 3), true), "%00%0A%FF");
}

TEST(UriCoding, EveryByteComesBack) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  for (const bool keep : {true, false}) {
    auto back = uri_decode(uri_encode(all, keep));
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, all);
  }
}

TEST(UriCoding, PlusAndBrokenEscapes) {
  EXPECT_EQ(*uri_decode("a+b%2bc"), "a+b+c");
  EXPECT_EQ(*uri_decode("a+b%2bc", true), "a b+c");
  for (const char* broken : {"%", "a%2", "%zz", "%2", "%%41", "x%-1"}) {
    auto result = uri_decode(broken);
    ASSERT_FALSE(result) << broken;
    EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(*uri_decode("%41"), "A");  // an escape at the very end
}

TEST(AmzDate, RoundTripAndRefusals) {
  const auto when = parse_amz_date("20261130T220238Z");
  ASSERT_TRUE(when);
  EXPECT_EQ(amz_date(*when), "20261130T220238Z");
  EXPECT_EQ(amz_date(*when + 999'999'999), "20261130T220238Z");
  EXPECT_EQ(amz_date(0), "19700101T000000Z");
  for (const char* bad : {"", "20261130T220238", "20261330T220238Z", "20260230T220238Z", "2026113xT220238Z", "20261130T250238Z",
                          "20261130 220238Z"}) {
    EXPECT_FALSE(parse_amz_date(bad)) << bad;
  }
}

TEST(MaskSecret, ShowsAtMostFourCharacters) {
  EXPECT_EQ(mask_secret("AKIAIOSFODNN7EXAMPLE"), "AKIA****");
  EXPECT_EQ(mask_secret("short"), "****");
  EXPECT_EQ(mask_secret(""), "****");
}

}  // namespace
}  // namespace thermo::net
