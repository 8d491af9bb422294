// A second opinion: signatures that botocore computed for odd keys and queries (make_sigv4_vectors.py), for signing and for
// verifying.

#include <gtest/gtest.h>

#include "net/sigv4.h"

namespace thermo::net {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;
struct Vector {
  std::string method, key;
  Pairs query, headers;
  std::string token, signature;
};

const std::vector<Vector>& vectors() {
  static const std::vector<Vector> kVectors = {
#include "sigv4_vectors.inc"
  };
  return kVectors;
}

const AccessKey kKey{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
constexpr const char* kDate = "20261130T220238Z";

SigningInput input_of(const Vector& v) {
  SigningInput input;
  input.method = v.method;
  input.encoded_path = "/" + uri_encode(v.key, true);
  input.query = v.query;
  input.headers = v.headers;
  input.headers.emplace_back("Host", "examplebucket.s3.eu-west-1.amazonaws.com");
  input.headers.emplace_back("X-Amz-Date", kDate);
  input.headers.emplace_back("X-Amz-Content-SHA256", kEmptySha256);
  if (!v.token.empty()) input.headers.emplace_back("X-Amz-Security-Token", v.token);
  input.payload_hash = kEmptySha256;
  input.region = "eu-west-1";
  input.amz_date = kDate;
  return input;
}

class Secrets final : public SecretFinder {
 public:
  std::optional<std::string> secret(const std::string&) const override { return kKey.secret; }
};

TEST(SigV4Vectors, SignLikeBotocore) {
  ASSERT_GT(vectors().size(), 45U);
  for (const auto& v : vectors()) {
    const auto input = input_of(v);
    EXPECT_EQ(signature(input, kKey), v.signature) << v.method << " '" << v.key << "'\n" << canonical_request(input);
  }
}

TEST(SigV4Vectors, VerifyWhatBotocoreSigned) {
  for (const auto& v : vectors()) {
    const auto input = input_of(v);
    auto headers = input.headers;
    headers.emplace_back("authorization", authorization(input, kKey));
    std::string target = input.encoded_path;
    for (const auto& [name, value] : v.query) {
      target += target.find('?') == std::string::npos ? '?' : '&';
      target += uri_encode(name, false);
      if (!value.empty()) target += '=' + uri_encode(value, false);
    }
    const auto result = verify(v.method, target, headers, Secrets(), "eu-west-1", *parse_amz_date(kDate));
    EXPECT_EQ(result.failure, AuthFailure::kNone) << v.method << " '" << v.key << "' " << result.detail;
  }
}

}  // namespace
}  // namespace thermo::net
