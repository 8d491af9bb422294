// The canonicaliser and the signature, used alike for signing and for verifying.

#include "net/sigv4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>

#include "net/sigv4_canonical.h"

namespace thermo::net {
namespace {

std::string hmac_sha256(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
  unsigned int length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       mac.data(), &length);
  return {reinterpret_cast<const char*>(mac.data()), length};
}

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

// Names lower-cased, values trimmed, sorted by name; values of one name joined by commas in the order sent.
std::vector<Header> canonical_headers(const std::vector<Header>& headers) {
  std::vector<Header> out;
  out.reserve(headers.size());
  for (const auto& [name, value] : headers) out.emplace_back(lower_ascii(name), fold_spaces(value));
  std::stable_sort(out.begin(), out.end(), [](const Header& a, const Header& b) { return a.first < b.first; });
  std::vector<Header> joined;
  joined.reserve(out.size());
  for (auto& header : out) {
    if (!joined.empty() && joined.back().first == header.first) {
      joined.back().second += ',' + header.second;
    } else {
      joined.push_back(std::move(header));
    }
  }
  return joined;
}

std::string signed_names(const std::vector<Header>& canonical) {
  std::string names;
  for (const auto& [name, value] : canonical) {
    if (!names.empty()) names += ';';
    names += name;
  }
  return names;
}

std::string scope_of(const SigningInput& input) {
  return input.amz_date.substr(0, 8) + '/' + input.region + '/' + input.service + "/aws4_request";
}

}  // namespace

std::string lower_ascii(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string fold_spaces(std::string_view value) {
  std::string out;
  out.reserve(value.size());
  bool space = false;
  for (const char c : value) {
    if (c == ' ' || c == '\t') {
      space = !out.empty();
    } else {
      if (space) out += ' ';
      space = false;
      out += c;
    }
  }
  return out;
}

std::string canonical_query(const std::vector<std::pair<std::string, std::string>>& query) {
  std::vector<std::pair<std::string, std::string>> encoded;
  encoded.reserve(query.size());
  for (const auto& [name, value] : query) encoded.emplace_back(uri_encode(name, false), uri_encode(value, false));
  // After encoding, as the specification says: '-' < '.' < '%' differ from the order of the raw bytes.
  std::sort(encoded.begin(), encoded.end());
  std::string out;
  for (const auto& [name, value] : encoded) {
    if (!out.empty()) out += '&';
    out += name;
    out += '=';
    out += value;
  }
  return out;
}

std::string canonical_request(const SigningInput& input) {
  const auto headers = canonical_headers(input.headers);
  std::string out;
  out.reserve(512);
  out += input.method;
  out += '\n';
  out += input.encoded_path.empty() ? std::string("/") : input.encoded_path;
  out += '\n';
  out += canonical_query(input.query);
  out += '\n';
  for (const auto& [name, value] : headers) {
    out += name;
    out += ':';
    out += value;
    out += '\n';
  }
  out += '\n';
  out += signed_names(headers);
  out += '\n';
  out += input.payload_hash;
  return out;
}

std::string signature(const SigningInput& input, const AccessKey& key) {
  const std::string to_sign =
      "AWS4-HMAC-SHA256\n" + input.amz_date + '\n' + scope_of(input) + '\n' + sha256_hex(canonical_request(input));
  const std::string date_key = hmac_sha256("AWS4" + key.secret, input.amz_date.substr(0, 8));
  const std::string region_key = hmac_sha256(date_key, input.region);
  const std::string service_key = hmac_sha256(region_key, input.service);
  return hex(hmac_sha256(hmac_sha256(service_key, "aws4_request"), to_sign));
}

std::string authorization(const SigningInput& input, const AccessKey& key) {
  return "AWS4-HMAC-SHA256 Credential=" + key.id + '/' + scope_of(input) +
         ",SignedHeaders=" + signed_names(canonical_headers(input.headers)) + ",Signature=" + signature(input, key);
}

}  // namespace thermo::net
