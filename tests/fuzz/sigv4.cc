// Signatures: what the canonicaliser signs must verify, whatever the request holds and however a client escapes it; nothing else
// may.
//
// Input: "METHOD path", "query", then "name: value" lines up to an empty one, then bytes that choose dates, escapes and what is
// tampered with.

#include <algorithm>

#include "fuzz/fuzz.h"
#include "net/sigv4.h"
#include "net/sigv4_canonical.h"

namespace thermo::fuzz {
namespace {

constexpr std::string_view kId = "AKIDEXAMPLE/with/slashes";
constexpr std::string_view kSecret = "the secret of the fuzz target";
constexpr WallNanos kSecond = 1'000'000'000;

class OneSecret final : public net::SecretFinder {
 public:
  explicit OneSecret(std::string_view secret) : secret_(secret) {}
  [[nodiscard]] std::optional<std::string> secret(const std::string& id) const override {
    return id == kId ? std::optional(secret_) : std::nullopt;
  }

 private:
  std::string secret_;
};

bool token_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

/// Names that the signature itself is made of are set below, each once.
bool reserved(std::string_view lower_name) {
  return lower_name == "authorization" || lower_name == "host" || lower_name == "x-amz-date" ||
         lower_name == "x-amz-content-sha256";
}

/// As some client sends it: what need not be escaped may be, in either case of letters.
std::string escaped(std::string_view text, bool keep_slash, Input& choice) {
  std::string out;
  for (const char c : text) {
    const std::string canonical = net::uri_encode({&c, 1}, keep_slash);
    const auto style = choice.byte() % 4;
    if (style == 1) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kDigits[byte >> 4U];
      out += kDigits[byte & 15U];
    } else {
      out += canonical;
    }
  }
  return out;
}

struct Received {
  std::string method, target;
  std::vector<net::Header> headers;
};

net::AuthFailure verdict(const Received& request, std::string_view secret, WallNanos now, std::string_view region = {}) {
  return net::verify(request.method, request.target, request.headers, OneSecret(secret), region, now).failure;
}

std::string target_of(std::string_view path, const std::vector<std::pair<std::string, std::string>>& query, Input& choice) {
  std::string target = "/" + escaped(path, true, choice);
  char separator = '?';
  for (const auto& [name, value] : query) {
    target += separator + escaped(name, false, choice);
    // A name without value is the same as one with an empty value.
    if (!value.empty() || choice.byte() % 2 == 0) target += '=' + escaped(value, false, choice);
    separator = '&';
  }
  return target;
}

void sign_and_verify(std::string_view text) {
  Input input(text);
  net::SigningInput signing;
  signing.method = input.until(' ');
  const auto path = input.line();
  for (Input query(input.line()); !query.empty();) {
    Input part(query.until('&'));
    const std::string name(part.until('='));
    if (name.starts_with("X-Amz-")) continue;
    // An empty name without value is no parameter at all on the wire.
    if (!name.empty()) signing.query.emplace_back(name, std::string(part.rest()));
  }
  while (!input.empty()) {
    const auto line = input.line();
    if (line.empty()) break;
    Input field(line);
    const std::string name(field.until(':'));
    if (name.empty() || !std::all_of(name.begin(), name.end(), token_char) || reserved(net::lower_ascii(name))) continue;
    signing.headers.emplace_back(name, std::string(field.rest()));
  }
  const WallNanos signed_at = static_cast<WallNanos>(input.number(4)) * kSecond;
  const WallNanos now = signed_at + static_cast<std::int8_t>(input.byte()) * 8 * kSecond;  // 17 minutes either way
  const bool skewed = std::abs(now - signed_at) > 15 * 60 * kSecond;
  const auto tamper = input.byte();
  Input choice(input.rest());

  signing.encoded_path = "/" + net::uri_encode(path, true);
  signing.amz_date = net::amz_date(signed_at);
  signing.region = "eu-west-1";
  signing.payload_hash = net::sha256_hex(path);
  FUZZ_CHECK(net::parse_amz_date(signing.amz_date) == signed_at);
  signing.headers.emplace_back("Host", "127.0.0.1:9000");
  signing.headers.emplace_back("X-Amz-Date", signing.amz_date);
  signing.headers.emplace_back("x-amz-content-sha256", signing.payload_hash);

  Received received{signing.method, target_of(path, signing.query, choice), signing.headers};
  received.headers.emplace_back("Authorization", net::authorization(signing, {std::string(kId), std::string(kSecret), {}}));
  const auto found = verdict(received, kSecret, now);
  FUZZ_CHECK(found == (skewed ? net::AuthFailure::kSkewed : net::AuthFailure::kNone));
  if (skewed) return;
  FUZZ_CHECK(verdict(received, kSecret, now, "us-east-1") == net::AuthFailure::kWrongRegion);
  FUZZ_CHECK(verdict(received, "another secret", now) == net::AuthFailure::kSignatureMismatch);

  Received changed = received;
  switch (tamper % 5) {
    case 0: changed.target += '!'; break;
    case 1: changed.method += 'X'; break;
    case 2: changed.headers.insert(changed.headers.begin(), {"x-amz-acl", "public-read"}); break;
    case 3: changed.headers[changed.headers.size() - 4].second += "1"; break;   // host
    default: changed.headers[changed.headers.size() - 2].second += "0"; break;  // hash of the body
  }
  FUZZ_CHECK(verdict(changed, kSecret, now) == net::AuthFailure::kSignatureMismatch);
}

/// A raw request: never a crash, and never accepted, for nobody knows this secret.
void verify_anything(std::string_view text) {
  Input input(text);
  Received request;
  request.method = input.until(' ');
  request.target = input.line();
  while (!input.empty()) {
    Input field(input.line());
    const std::string name(field.until(':'));
    request.headers.emplace_back(name, net::fold_spaces(field.rest()));
  }
  FUZZ_CHECK(verdict(request, "a secret that signs nothing", 1'779'000'000 * kSecond) != net::AuthFailure::kNone);
}

}  // namespace
}  // namespace thermo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thermo;
  const auto text = fuzz::text_of(data, size);
  fuzz::sign_and_verify(text);
  fuzz::verify_anything(text);
  const auto folded = net::fold_spaces(text);
  FUZZ_CHECK(net::fold_spaces(folded) == folded);
  if (const auto when = net::parse_amz_date(text.substr(0, 16))) {
    FUZZ_CHECK(net::parse_amz_date(net::amz_date(*when)) == *when);
  }
  return 0;
}
