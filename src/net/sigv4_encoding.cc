// URI encoding, hashes and the date form that signatures are made of.

#include <openssl/evp.h>

#include <array>
#include <chrono>

#include "net/sigv4.h"

namespace thermo::net {
namespace {

constexpr std::string_view kUpperHex = "0123456789ABCDEF";
constexpr std::string_view kLowerHex = "0123456789abcdef";

// No <cctype>: the locale must not decide what is signed.
constexpr bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' ||
         c == '~';
}

constexpr int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Two decimal digits at `at`; -1 when they are none.
int two_digits(std::string_view text, std::size_t at) {
  const int tens = text[at] - '0';
  const int ones = text[at + 1] - '0';
  if (tens < 0 || tens > 9 || ones < 0 || ones > 9) return -1;
  return tens * 10 + ones;
}

}  // namespace

const std::string kEmptySha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string uri_encode(std::string_view text, bool keep_slash) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (const char c : text) {
    if (is_unreserved(c) || (c == '/' && keep_slash)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kUpperHex[byte >> 4U];
      out += kUpperHex[byte & 15U];
    }
  }
  return out;
}

Result<std::string> uri_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return fail(ErrorCode::kInvalidArgument,
                    "broken escape '" + std::string(text.substr(i, 3)) + "': % must be followed by two hexadecimal digits");
      }
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i] == '+' && plus_is_space ? ' ' : text[i];
    }
  }
  return out;
}

std::string sha256_hex(std::string_view bytes) {
  // Fetched once: the implicit fetch of every EVP_sha256() use costs more than hashing a canonical request.
  static EVP_MD* const kSha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, kSha256, nullptr);
  std::string out;
  out.reserve(2UL * length);
  for (unsigned int i = 0; i < length; ++i) {
    out += kLowerHex[digest[i] >> 4U];
    out += kLowerHex[digest[i] & 15U];
  }
  return out;
}

std::string amz_date(WallNanos wall) {
  using namespace std::chrono;
  const sys_time<nanoseconds> when{nanoseconds(wall)};
  const auto day = floor<days>(when);
  const year_month_day date{day};
  const hh_mm_ss time{floor<seconds>(when - day)};
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%04d%02u%02uT%02d%02d%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), static_cast<int>(time.hours().count()),
                static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()));
  return text.data();
}

std::optional<WallNanos> parse_amz_date(std::string_view text) {
  using namespace std::chrono;
  if (text.size() != 16 || text[8] != 'T' || text[15] != 'Z') return std::nullopt;
  const int century = two_digits(text, 0);
  const int years = two_digits(text, 2);
  const int months = two_digits(text, 4);
  const int mdays = two_digits(text, 6);
  const int hour = two_digits(text, 9);
  const int minute = two_digits(text, 11);
  const int second = two_digits(text, 13);
  // 1678..2261 is what fits into 64-bit nanoseconds; a signature needs far less.
  if (century < 19 || century > 21 || years < 0 || months < 1 || mdays < 1 || hour < 0 || hour > 23 || minute < 0 ||
      minute > 59 || second < 0 || second > 60) {
    return std::nullopt;
  }
  const year_month_day date{year(century * 100 + years), month(static_cast<unsigned>(months)), day(static_cast<unsigned>(mdays))};
  if (!date.ok()) return std::nullopt;
  const auto when = sys_days(date) + hours(hour) + minutes(minute) + seconds(second);
  return duration_cast<nanoseconds>(when.time_since_epoch()).count();
}

std::string mask_secret(std::string_view secret) {
  // A short text gives nothing away at all: four characters could be half of it.
  return secret.size() < 12 ? "****" : std::string(secret.substr(0, 4)) + "****";
}

}  // namespace thermo::net
