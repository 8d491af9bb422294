#pragma once
// AWS Signature Version 4 for S3: one canonicaliser that signs (client) and verifies (server). The path is encoded once and never
// normalised.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "net/http_client.h"

namespace thermo::net {

struct AccessKey {
  std::string id;
  std::string secret;
  std::string session_token;  ///< empty: none
};

/// RFC 3986 as S3 wants it: unreserved A-Z a-z 0-9 - _ . ~ stay; '/' stays when `keep_slash`; all else %XX upper-case.
[[nodiscard]] std::string uri_encode(std::string_view text, bool keep_slash);
/// %XX decoded ('+' is left alone unless `plus_is_space`); kInvalidArgument for a broken escape.
[[nodiscard]] Result<std::string> uri_decode(std::string_view text, bool plus_is_space = false);

inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";
/// SHA-256 of the empty string, hexadecimal.
extern const std::string kEmptySha256;
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

struct SigningInput {
  std::string method;
  std::string encoded_path;                                ///< as it is sent, at least "/"
  std::vector<std::pair<std::string, std::string>> query;  ///< decoded names and values
  std::vector<Header> headers;                             ///< all that are to be signed; names in any case, host included
  std::string payload_hash;                                ///< hexadecimal sha256 or UNSIGNED-PAYLOAD ...
  std::string region;
  std::string service = "s3";
  std::string amz_date;  ///< "20261130T220238Z"
};

/// The canonical request, for tests against published vectors and for error answers.
[[nodiscard]] std::string canonical_request(const SigningInput& input);
/// The value of the Authorization header.
[[nodiscard]] std::string authorization(const SigningInput& input, const AccessKey& key);
/// Hexadecimal signature alone (for query signing and verification).
[[nodiscard]] std::string signature(const SigningInput& input, const AccessKey& key);
/// "20261130T220238Z" of a wall time, and back.
[[nodiscard]] std::string amz_date(WallNanos wall);
[[nodiscard]] std::optional<WallNanos> parse_amz_date(std::string_view text);

/// What verification found.
enum class AuthFailure { kNone, kMissing, kMalformed, kUnknownKey, kSignatureMismatch, kSkewed, kExpired, kWrongRegion };
struct VerifyResult {
  AuthFailure failure = AuthFailure::kNone;
  std::string access_key_id;
  std::string detail;  ///< for the error body
};
/// Verifies header or query (presigned) authentication of a received request. `find_secret` returns the secret of an access key
/// id. `region` empty: any is accepted. Skew beyond 15 minutes is kSkewed. The body's hash is taken from x-amz-content-sha256.
class SecretFinder {
 public:
  virtual ~SecretFinder() = default;
  [[nodiscard]] virtual std::optional<std::string> secret(const std::string& access_key_id) const = 0;
};
[[nodiscard]] VerifyResult verify(std::string_view method, std::string_view raw_target, const std::vector<Header>& headers,
                                  const SecretFinder& secrets, std::string_view region, WallNanos now);

/// "AKIA****" for logs.
[[nodiscard]] std::string mask_secret(std::string_view secret);

}  // namespace thermo::net
