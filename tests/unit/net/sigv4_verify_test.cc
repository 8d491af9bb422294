// Verification of received requests: what is accepted, and every way to be refused.

#include <gtest/gtest.h>

#include <map>

#include "net/sigv4.h"

namespace thermo::net {
namespace {

class Secrets final : public SecretFinder {
 public:
  std::optional<std::string> secret(const std::string& id) const override {
    if (id == "AKID") return "top-secret";
    return std::nullopt;
  }
};

const AccessKey kKey{"AKID", "top-secret", ""};
constexpr WallNanos kSecond = 1'000'000'000;
const WallNanos kNow = *parse_amz_date("20240229T235950Z");

struct Request {
  std::string method = "GET";
  std::string target;
  std::vector<Header> headers;
};

Request signed_request(const std::string& method, const std::string& path, std::vector<std::pair<std::string, std::string>> query,
                       std::string target, const AccessKey& key = kKey, WallNanos at = kNow) {
  SigningInput input;
  input.method = method;
  input.encoded_path = path;
  input.query = std::move(query);
  input.amz_date = amz_date(at);
  input.region = "eu-west-1";
  input.payload_hash = kUnsignedPayload;
  input.headers = {{"Host", "h:9000"}, {"x-amz-date", input.amz_date}, {"x-amz-content-sha256", std::string(kUnsignedPayload)}};
  Request request{method, std::move(target), input.headers};
  request.headers.emplace_back("Authorization", authorization(input, key));
  return request;
}

VerifyResult check(const Request& r, std::string_view region = "", WallNanos now = kNow) {
  return verify(r.method, r.target, r.headers, Secrets(), region, now);
}

TEST(Verify, AcceptsItsOwnSignature) {
  const auto result = check(signed_request("GET", "/b/dt%3D2024/a%20b", {}, "/b/dt%3D2024/a%20b"));
  EXPECT_EQ(result.failure, AuthFailure::kNone) << result.detail;
  EXPECT_EQ(result.access_key_id, "AKID");
}

TEST(Verify, AcceptsAPathThatTheClientEscapedLess) {
  EXPECT_EQ(check(signed_request("GET", "/b/dt%3D2024/x", {}, "/b/dt=2024/x")).failure, AuthFailure::kNone);
  EXPECT_EQ(check(signed_request("GET", "/b/a//./b", {}, "/b/a//./b")).failure, AuthFailure::kNone);
}

TEST(Verify, SubresourceWithAndWithoutEquals) {
  EXPECT_EQ(check(signed_request("POST", "/b/k", {{"uploads", ""}}, "/b/k?uploads")).failure, AuthFailure::kNone);
  EXPECT_EQ(check(signed_request("POST", "/b/k", {{"uploads", ""}}, "/b/k?uploads=")).failure, AuthFailure::kNone);
}

TEST(Verify, SignedAcceptEncodingVerifies) {
  auto input_headers = std::vector<Header>{
      {"host", "h"}, {"accept-encoding", "identity"}, {"x-amz-date", amz_date(kNow)}, {"x-amz-content-sha256", kEmptySha256}};
  SigningInput input{"GET", "/", {}, input_headers, kEmptySha256, "us-east-1", "s3", amz_date(kNow)};
  input_headers.emplace_back("authorization", authorization(input, kKey));
  EXPECT_EQ(verify("GET", "/", input_headers, Secrets(), "", kNow).failure, AuthFailure::kNone);
  input_headers[1].second = "gzip";  // rewritten on the way
  EXPECT_EQ(verify("GET", "/", input_headers, Secrets(), "", kNow).failure, AuthFailure::kSignatureMismatch);
}

TEST(Verify, MissingAndMalformed) {
  EXPECT_EQ(check({"GET", "/", {{"host", "h"}}}).failure, AuthFailure::kMissing);
  const std::vector<std::string> bad = {
      "AWS AKID:sig",
      "AWS4-HMAC-SHA256 ",
      "AWS4-HMAC-SHA256 Credential=AKID/20240229/eu-west-1/s3/aws4_request",
      "AWS4-HMAC-SHA256 Credential=AKID/20240229/s3/aws4_request,SignedHeaders=host,Signature=0",
      "AWS4-HMAC-SHA256 Credential=/20240229/eu-west-1/s3/aws4_request,SignedHeaders=host,Signature=0",
      "AWS4-HMAC-SHA256 Credential=AKID/20240229/eu-west-1/ec2/aws4_request,SignedHeaders=host,Signature=0",
      "AWS4-HMAC-SHA256 Credential=AKID/20240229/eu-west-1/s3/aws4_request,SignedHeaders=x-amz-date,Signature=0",
      "AWS4-HMAC-SHA256 Credential=AKID/20240228/eu-west-1/s3/aws4_request,SignedHeaders=host,Signature=0",
  };
  for (const auto& value : bad) {
    const Request r{
        "GET",
        "/",
        {{"host", "h"}, {"x-amz-date", amz_date(kNow)}, {"x-amz-content-sha256", kEmptySha256}, {"authorization", value}}};
    EXPECT_EQ(check(r).failure, AuthFailure::kMalformed) << value;
  }
  for (const char* dropped : {"x-amz-date", "x-amz-content-sha256"}) {
    auto r = signed_request("GET", "/", {}, "/");
    std::erase_if(r.headers, [&](const Header& h) { return h.first == dropped; });
    EXPECT_EQ(check(r).failure, AuthFailure::kMalformed) << dropped;
  }
  auto r = signed_request("GET", "/", {}, "/%zz");
  EXPECT_EQ(check(r).failure, AuthFailure::kMalformed);
}

TEST(Verify, UnknownKeyWrongSecretWrongRegion) {
  EXPECT_EQ(check(signed_request("GET", "/", {}, "/", {"NOBODY", "x", ""})).failure, AuthFailure::kUnknownKey);
  EXPECT_EQ(check(signed_request("GET", "/", {}, "/", {"AKID", "wrong", ""})).failure, AuthFailure::kSignatureMismatch);
  EXPECT_EQ(check(signed_request("GET", "/", {}, "/"), "us-east-1").failure, AuthFailure::kWrongRegion);
  EXPECT_EQ(check(signed_request("GET", "/", {}, "/"), "eu-west-1").failure, AuthFailure::kNone);
}

TEST(Verify, AnythingChangedOnTheWayIsNoticed) {
  const auto good = signed_request("GET", "/b/k", {{"x", "1"}}, "/b/k?x=1");
  ASSERT_EQ(check(good).failure, AuthFailure::kNone);
  auto r = good;
  r.method = "PUT";
  EXPECT_EQ(check(r).failure, AuthFailure::kSignatureMismatch);
  r = good;
  r.target = "/b/K?x=1";
  EXPECT_EQ(check(r).failure, AuthFailure::kSignatureMismatch);
  r = good;
  r.target = "/b/k?x=1&y=2";
  EXPECT_EQ(check(r).failure, AuthFailure::kSignatureMismatch);
  r = good;
  r.headers[0].second = "other:9000";
  EXPECT_EQ(check(r).failure, AuthFailure::kSignatureMismatch);
  r = good;
  r.headers.emplace_back("x-amz-copy-source", "/b/other");
  EXPECT_EQ(check(r).failure, AuthFailure::kSignatureMismatch);
  r = good;
  std::erase_if(r.headers, [](const Header& h) { return h.first == "Host"; });
  EXPECT_EQ(check(r).failure, AuthFailure::kSignatureMismatch);
}

TEST(Verify, SkewIsFifteenMinutesBothWays) {
  const auto r = signed_request("GET", "/", {}, "/");
  EXPECT_EQ(check(r, "", kNow + 900 * kSecond).failure, AuthFailure::kNone);
  EXPECT_EQ(check(r, "", kNow + 901 * kSecond).failure, AuthFailure::kSkewed);
  EXPECT_EQ(check(r, "", kNow - 900 * kSecond).failure, AuthFailure::kNone);
  EXPECT_EQ(check(r, "", kNow - 901 * kSecond).failure, AuthFailure::kSkewed);
}

Request presigned(const std::string& method, const std::string& expires, const std::string& change = "") {
  SigningInput input;
  input.method = method;
  input.encoded_path = "/b/a%20b";
  input.amz_date = amz_date(kNow);
  input.region = "eu-west-1";
  input.payload_hash = kUnsignedPayload;
  input.headers = {{"host", "h"}};
  input.query = {{"X-Amz-Algorithm", "AWS4-HMAC-SHA256"},
                 {"X-Amz-Credential", "AKID/" + input.amz_date.substr(0, 8) + "/eu-west-1/s3/aws4_request"},
                 {"X-Amz-Date", input.amz_date},
                 {"X-Amz-Expires", expires},
                 {"X-Amz-SignedHeaders", "host"}};
  std::string target = "/b/a%20b?";
  for (const auto& [name, value] : input.query) {
    if (name != change) target += name + "=" + uri_encode(value, false) + "&";
  }
  target += "X-Amz-Signature=" + signature(input, kKey);
  return {method, target, {{"Host", "h"}}};
}

TEST(VerifyPresigned, AcceptedUntilItExpires) {
  const auto r = presigned("GET", "3600");
  EXPECT_EQ(check(r).failure, AuthFailure::kNone);
  EXPECT_EQ(check(r, "", kNow + 3600 * kSecond).failure, AuthFailure::kNone);
  EXPECT_EQ(check(r, "", kNow + 3601 * kSecond).failure, AuthFailure::kExpired);
  EXPECT_EQ(check(r, "", kNow - 901 * kSecond).failure, AuthFailure::kSkewed);
  EXPECT_EQ(check(r, "us-east-1").failure, AuthFailure::kWrongRegion);
}

TEST(VerifyPresigned, IsMethodSpecific) {
  auto get = presigned("GET", "60");
  get.method = "HEAD";
  EXPECT_EQ(check(get).failure, AuthFailure::kSignatureMismatch);
  auto head = presigned("HEAD", "60");
  EXPECT_EQ(check(head).failure, AuthFailure::kNone);
  head.method = "GET";
  EXPECT_EQ(check(head).failure, AuthFailure::kSignatureMismatch);
}

TEST(VerifyPresigned, MalformedOnes) {
  EXPECT_EQ(check(presigned("GET", "604800")).failure, AuthFailure::kNone);
  for (const char* expires : {"604801", "0", "-5", "x", "", "99999999999999999999"}) {
    EXPECT_EQ(check(presigned("GET", expires)).failure, AuthFailure::kMalformed) << expires;
  }
  for (const char* missing : {"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders"}) {
    EXPECT_EQ(check(presigned("GET", "60", missing)).failure, AuthFailure::kMalformed) << missing;
  }
}

}  // namespace
}  // namespace thermo::net
