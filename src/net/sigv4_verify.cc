// The server's side: takes a received request apart and checks that its signature is the one the canonicaliser gives.

#include <openssl/crypto.h>

#include <algorithm>
#include <charconv>

#include "net/sigv4.h"
#include "net/sigv4_canonical.h"

namespace thermo::net {
namespace {

constexpr WallNanos kSecond = 1'000'000'000;
constexpr WallNanos kMaxSkew = 15 * 60 * kSecond;
constexpr std::int64_t kMaxExpirySeconds = 7 * 24 * 3600;

using Query = std::vector<std::pair<std::string, std::string>>;

// What the request claims about itself.
struct Claim {
  std::string key_id;
  std::string scope_date;
  std::string region;
  std::string service;
  std::vector<std::string> signed_headers;
  std::string signature;
  std::string date;
  std::int64_t expires_seconds = -1;  // presigned only
};

VerifyResult refuse(AuthFailure failure, std::string key_id, std::string detail) {
  return {failure, std::move(key_id), std::move(detail)};
}
VerifyResult malformed(std::string detail) { return refuse(AuthFailure::kMalformed, {}, std::move(detail)); }

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  while (true) {
    const std::size_t to = text.find(separator, from);
    parts.emplace_back(text.substr(from, to == std::string_view::npos ? to : to - from));
    if (to == std::string_view::npos) return parts;
    from = to + 1;
  }
}

const std::string* find(const std::vector<Header>& headers, std::string_view lower_name) {
  for (const auto& [name, value] : headers) {
    if (lower_ascii(name) == lower_name) return &value;
  }
  return nullptr;
}

const std::string* find_query(const Query& query, std::string_view name) {
  for (const auto& [key, value] : query) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::optional<Query> parse_query(std::string_view text) {
  Query query;
  if (text.empty()) return query;
  for (const auto& part : split(text, '&')) {
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    auto name = uri_decode(std::string_view(part).substr(0, equals));
    auto value = uri_decode(equals == std::string::npos ? std::string_view() : std::string_view(part).substr(equals + 1));
    if (!name || !value) return std::nullopt;
    query.emplace_back(std::move(*name), std::move(*value));
  }
  return query;
}

// "AKID/20130524/us-east-1/s3/aws4_request"; the key id itself may hold slashes.
bool parse_credential(std::string_view text, Claim& claim) {
  auto parts = split(text, '/');
  const std::size_t n = parts.size();
  if (n < 5 || parts[n - 1] != "aws4_request") return false;
  claim.service = parts[n - 2];
  claim.region = parts[n - 3];
  claim.scope_date = parts[n - 4];
  claim.key_id =
      std::string(text.substr(0, text.size() - (claim.scope_date.size() + claim.region.size() + claim.service.size() + 16)));
  return !claim.key_id.empty() && claim.scope_date.size() == 8 && !claim.service.empty();
}

// Splits "Credential=..., SignedHeaders=..., Signature=..."; the blanks after the commas are optional.
bool parse_authorization(std::string_view fields, Claim& claim) {
  bool credential = false;
  for (const auto& raw : split(fields, ',')) {
    const std::string field = fold_spaces(raw);
    const std::size_t equals = field.find('=');
    if (equals == std::string::npos) return false;
    const std::string name = field.substr(0, equals);
    const std::string value = field.substr(equals + 1);
    if (name == "Credential") {
      credential = parse_credential(value, claim);
    } else if (name == "SignedHeaders") {
      claim.signed_headers = split(value, ';');
    } else if (name == "Signature") {
      claim.signature = value;
    }
  }
  return credential && !claim.signed_headers.empty() && !claim.signature.empty();
}

bool is_signed(const Claim& claim, std::string_view name) {
  return std::find(claim.signed_headers.begin(), claim.signed_headers.end(), name) != claim.signed_headers.end();
}

// Somebody on the way could add a header that changes what the request means: all x-amz-* that carry meaning must be signed.
const std::string* unsigned_amz_header(const std::vector<Header>& headers, const Claim& claim) {
  for (const auto& header : headers) {
    const std::string name = lower_ascii(header.first);
    if (name.starts_with("x-amz-") && name != "x-amz-content-sha256" && name != "x-amz-user-agent" && !is_signed(claim, name)) {
      return &header.first;
    }
  }
  return nullptr;
}

VerifyResult check_time(const Claim& claim, WallNanos now) {
  const auto when = parse_amz_date(claim.date);
  if (!when) return malformed("the request's date '" + claim.date + "' is not of the form 20261130T220238Z");
  if (claim.date.compare(0, 8, claim.scope_date) != 0) {
    return malformed("the date of the credential scope '" + claim.scope_date + "' is not that of the request '" + claim.date +
                     "'");
  }
  const bool presigned = claim.expires_seconds >= 0;
  if (*when - now > kMaxSkew || (!presigned && now - *when > kMaxSkew)) {
    return refuse(AuthFailure::kSkewed, claim.key_id, "request time " + claim.date + ", server time " + amz_date(now));
  }
  if (presigned && now > *when + claim.expires_seconds * kSecond) {
    return refuse(AuthFailure::kExpired, claim.key_id,
                  "signed at " + claim.date + " for " + std::to_string(claim.expires_seconds) + " s");
  }
  return {};
}

VerifyResult check(const Claim& claim, SigningInput input, const std::vector<Header>& headers, const SecretFinder& secrets,
                   std::string_view region, WallNanos now) {
  if (claim.service != "s3") return malformed("the credential is for service '" + claim.service + "', not s3");
  if (!is_signed(claim, "host")) return malformed("the host header is not signed");
  const auto secret = secrets.secret(claim.key_id);
  if (!secret) return refuse(AuthFailure::kUnknownKey, claim.key_id, "the access key id does not exist here");
  if (!region.empty() && claim.region != region) {
    return refuse(AuthFailure::kWrongRegion, claim.key_id,
                  "the region '" + claim.region + "' is wrong; expecting '" + std::string(region) + "'");
  }
  if (auto timing = check_time(claim, now); timing.failure != AuthFailure::kNone) return timing;
  if (const auto* name = unsigned_amz_header(headers, claim)) {
    return refuse(AuthFailure::kSignatureMismatch, claim.key_id, "the header " + *name + " is present but was not signed");
  }
  for (const auto& name : claim.signed_headers) {
    bool found = false;
    for (const auto& header : headers) {
      if (lower_ascii(header.first) != name) continue;
      input.headers.emplace_back(name, header.second);
      found = true;
    }
    if (!found) return refuse(AuthFailure::kSignatureMismatch, claim.key_id, "the signed header " + name + " did not arrive");
  }
  input.region = claim.region;
  input.service = claim.service;
  input.amz_date = claim.date;
  const std::string expected = signature(input, {claim.key_id, *secret, {}});
  if (expected.size() != claim.signature.size() || CRYPTO_memcmp(expected.data(), claim.signature.data(), expected.size()) != 0) {
    return refuse(AuthFailure::kSignatureMismatch, claim.key_id, "canonical request:\n" + canonical_request(input));
  }
  return {AuthFailure::kNone, claim.key_id, {}};
}

VerifyResult verify_header(std::string_view value, SigningInput input, const std::vector<Header>& headers,
                           const SecretFinder& secrets, std::string_view region, WallNanos now) {
  constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256 ";
  Claim claim;
  if (!value.starts_with(kAlgorithm)) return malformed("the Authorization header is not of algorithm AWS4-HMAC-SHA256");
  if (!parse_authorization(value.substr(kAlgorithm.size()), claim)) {
    return malformed("the Authorization header lacks a well-formed Credential, SignedHeaders or Signature");
  }
  const auto* date = find(headers, "x-amz-date");
  const auto* hash = find(headers, "x-amz-content-sha256");
  if (date == nullptr) return malformed("the header x-amz-date is missing");
  if (hash == nullptr) return malformed("the header x-amz-content-sha256 is missing");
  claim.date = *date;
  input.payload_hash = *hash;
  return check(claim, std::move(input), headers, secrets, region, now);
}

VerifyResult verify_presigned(SigningInput input, const std::vector<Header>& headers, const SecretFinder& secrets,
                              std::string_view region, WallNanos now) {
  Claim claim;
  const auto* algorithm = find_query(input.query, "X-Amz-Algorithm");
  const auto* credential = find_query(input.query, "X-Amz-Credential");
  const auto* date = find_query(input.query, "X-Amz-Date");
  const auto* expires = find_query(input.query, "X-Amz-Expires");
  const auto* names = find_query(input.query, "X-Amz-SignedHeaders");
  const auto* sent = find_query(input.query, "X-Amz-Signature");
  if (algorithm == nullptr || credential == nullptr || date == nullptr || expires == nullptr || names == nullptr ||
      sent == nullptr) {
    return malformed("query authentication needs X-Amz-Algorithm, -Credential, -Date, -Expires, -SignedHeaders and -Signature");
  }
  if (*algorithm != "AWS4-HMAC-SHA256") return malformed("X-Amz-Algorithm is not AWS4-HMAC-SHA256");
  if (!parse_credential(*credential, claim)) return malformed("X-Amz-Credential is malformed");
  const auto* end = expires->data() + expires->size();
  const auto parsed = std::from_chars(expires->data(), end, claim.expires_seconds);
  if (parsed.ec != std::errc() || parsed.ptr != end || claim.expires_seconds < 1 || claim.expires_seconds > kMaxExpirySeconds) {
    return malformed("X-Amz-Expires must be 1 to 604800 seconds");
  }
  claim.date = *date;
  claim.signed_headers = split(*names, ';');
  claim.signature = *sent;
  const auto* hash = find_query(input.query, "X-Amz-Content-Sha256");
  if (hash == nullptr && is_signed(claim, "x-amz-content-sha256")) hash = find(headers, "x-amz-content-sha256");
  input.payload_hash = hash != nullptr ? *hash : std::string(kUnsignedPayload);
  std::erase_if(input.query, [](const auto& pair) { return pair.first == "X-Amz-Signature"; });
  return check(claim, std::move(input), headers, secrets, region, now);
}

}  // namespace

VerifyResult verify(std::string_view method, std::string_view raw_target, const std::vector<Header>& headers,
                    const SecretFinder& secrets, std::string_view region, WallNanos now) {
  const std::size_t mark = raw_target.find('?');
  auto path = uri_decode(raw_target.substr(0, mark));
  auto query = parse_query(mark == std::string_view::npos ? std::string_view() : raw_target.substr(mark + 1));
  if (!path || !query) return malformed("the request target holds a broken % escape");
  SigningInput input;
  input.method = std::string(method);
  // Decoded and encoded again: clients differ in what they escape on the wire, all sign the one canonical form.
  input.encoded_path = uri_encode(*path, true);
  input.query = std::move(*query);
  if (const auto* value = find(headers, "authorization"))
    return verify_header(*value, std::move(input), headers, secrets, region, now);
  if (find_query(input.query, "X-Amz-Signature") != nullptr || find_query(input.query, "X-Amz-Algorithm") != nullptr) {
    return verify_presigned(std::move(input), headers, secrets, region, now);
  }
  return refuse(AuthFailure::kMissing, {}, "the request carries no signature");
}

}  // namespace thermo::net
