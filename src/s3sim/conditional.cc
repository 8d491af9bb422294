#include "s3sim/conditional.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <string>

namespace thermo::s3sim {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string_view bare_tag(std::string_view tag) {
  tag = trim(tag);
  if (tag.starts_with("W/")) tag.remove_prefix(2);
  if (tag.size() >= 2 && tag.front() == '"' && tag.back() == '"') tag = tag.substr(1, tag.size() - 2);
  return tag;
}

/// A number too large for 64 bits is as good as infinity here.
std::optional<std::uint64_t> parse_number(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  std::uint64_t value = 0;
  const auto [ptr, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  return ec == std::errc() ? value : UINT64_MAX;
}

}  // namespace

std::optional<ByteSpan> resolve_range(std::string_view range, std::uint64_t size) {
  const ByteSpan whole{0, size, false};
  range = trim(range);
  if (!range.starts_with("bytes=")) return whole;
  range = trim(range.substr(6));
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos || range.find(',') != std::string_view::npos) return whole;
  const std::string_view first_text = trim(range.substr(0, dash));
  const std::string_view last_text = trim(range.substr(dash + 1));
  if (first_text.empty()) {
    const auto count = parse_number(last_text);
    if (!count) return whole;
    if (*count == 0) return std::nullopt;
    // S3 answers 200 to a suffix of nothing: there is no last byte that Content-Range could name.
    if (size == 0) return whole;
    const std::uint64_t length = std::min(*count, size);
    return ByteSpan{size - length, length, true};
  }
  const auto first = parse_number(first_text);
  if (!first) return whole;
  std::uint64_t last = UINT64_MAX;
  if (!last_text.empty()) {
    const auto given = parse_number(last_text);
    if (!given || *given < *first) return whole;
    last = *given;
  }
  if (*first >= size) return std::nullopt;
  return ByteSpan{*first, std::min(last, size - 1) - *first + 1, true};
}

bool etag_matches(std::string_view header, std::string_view etag) {
  const std::string_view wanted = bare_tag(etag);
  while (true) {
    const std::size_t comma = header.find(',');
    const std::string_view one = bare_tag(header.substr(0, comma));
    if (one == "*" || one == wanted) return true;
    if (comma == std::string_view::npos) return false;
    header.remove_prefix(comma + 1);
  }
}

std::optional<std::int64_t> parse_http_time(std::string_view text) {
  std::tm tm{};
  const char* end = ::strptime(std::string(text).c_str(), "%a, %d %b %Y %H:%M:%S GMT", &tm);
  if (!end) return std::nullopt;
  return static_cast<std::int64_t>(::timegm(&tm));
}

Condition check_read(const net::ServerRequest& request, const Object& object) {
  const std::int64_t modified = object.modified / 1'000'000'000;
  if (const auto* tags = request.header("if-match")) {
    if (!etag_matches(*tags, object.etag)) return Condition::kFailed;
  } else if (const auto* since = request.header("if-unmodified-since")) {
    const auto when = parse_http_time(*since);
    if (when && modified > *when) return Condition::kFailed;
  }
  if (const auto* tags = request.header("if-none-match")) {
    if (etag_matches(*tags, object.etag)) return Condition::kNotModified;
  } else if (const auto* since = request.header("if-modified-since")) {
    const auto when = parse_http_time(*since);
    if (when && modified <= *when) return Condition::kNotModified;
  }
  return Condition::kProceed;
}

}  // namespace thermo::s3sim
