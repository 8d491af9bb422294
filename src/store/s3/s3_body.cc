#include "store/s3/s3_body.h"

#include <fmt/format.h>

#include <charconv>

#include "store/s3/s3_dates.h"
#include "store/s3/s3_xml.h"

namespace thermo::store {
namespace {

bool take_number(std::string_view& text, char end, std::uint64_t& value) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  if (end == '\0') return text.empty();
  if (text.empty() || text.front() != end) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<std::uint64_t> content_length(const net::HttpResponse& head) {
  const auto* value = head.header("content-length");
  if (value == nullptr) return std::nullopt;
  std::string_view text = *value;
  std::uint64_t length = 0;
  return take_number(text, '\0', length) ? std::optional(length) : std::nullopt;
}

}  // namespace

std::optional<ContentRange> parse_content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  ContentRange out;
  std::uint64_t last = 0;
  if (!take_number(text, '-', out.range.offset) || !take_number(text, '/', last) || !take_number(text, '\0', out.total))
    return std::nullopt;
  if (last < out.range.offset || last >= out.total) return std::nullopt;
  out.range.length = last - out.range.offset + 1;
  return out;
}

BodySink* RangeBody::route(const net::HttpResponse& head) {
  refused_.reset();
  collected_ = false;
  running_.reset();
  passed_on_ = 0;
  if (head.status / 100 != 2) return nullptr;  // an error document
  refused_ = check_head(head);
  if (refused_) return this;
  if (expected_.verify != Verify::kNone && head.status == 200) {
    if (const auto stored = stored_checksum(head)) {
      running_.emplace(stored->algorithm);
      collected_ = expected_.verify == Verify::kKeptBack;
    }
  }
  return collected_ ? nullptr : this;
}

std::optional<Error> RangeBody::check_head(const net::HttpResponse& head) const {
  const auto* etag = head.header("etag");
  if (etag == nullptr || etag->empty()) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: the answer carries no ETag, so it cannot be told which version it is of", expected_.what));
  }
  if (!expected_.if_match.empty() && quoted_etag(*etag) != quoted_etag(expected_.if_match)) {
    return Error(ErrorCode::kPreconditionFailed,
                 fmt::format("{}: asked for version {}, got {}", expected_.what, expected_.if_match, *etag))
        .with_http(412);
  }
  return head.status == 206 ? check_partial(head) : check_whole(head);
}

std::optional<Error> RangeBody::check_partial(const net::HttpResponse& head) const {
  const auto* header = head.header("content-range");
  const auto got = header != nullptr ? parse_content_range(*header) : std::nullopt;
  if (!got) return Error(ErrorCode::kCorrupt, fmt::format("{}: 206 without a usable Content-Range", expected_.what));
  if (got->total != expected_.object_size) {
    return Error(ErrorCode::kPreconditionFailed,
                 fmt::format("{}: the object has {} bytes now, not {}", expected_.what, got->total, expected_.object_size))
        .with_http(412);
  }
  if (got->range != expected_.range) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: asked for bytes {}-{}, got '{}'", expected_.what, expected_.range.offset,
                                                  expected_.range.end() - 1, *header));
  }
  return std::nullopt;
}

std::optional<Error> RangeBody::check_whole(const net::HttpResponse& head) const {
  const auto length = content_length(head);
  if (length && *length != expected_.object_size) {
    return Error(ErrorCode::kPreconditionFailed,
                 fmt::format("{}: the object has {} bytes now, not {}", expected_.what, *length, expected_.object_size))
        .with_http(412);
  }
  if (expected_.range.offset != 0 || expected_.range.length != expected_.object_size) {
    return Error(ErrorCode::kNotSupported,
                 fmt::format("{}: the store ignored the Range header and sent the whole object", expected_.what));
  }
  return std::nullopt;
}

Result<void> RangeBody::write(std::span<const std::byte> bytes) {
  if (refused_) return fail(*refused_);
  if (passed_on_ + bytes.size() > expected_.range.length) {
    return fail(ErrorCode::kCorrupt, fmt::format("{}: more than the {} bytes asked for", expected_.what, expected_.range.length));
  }
  passed_on_ += bytes.size();
  if (running_ && !collected_) running_->update({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return target_.write(bytes);
}

Result<void> RangeBody::verify(const net::HttpResponse& answer) {
  const auto stored = stored_checksum(answer);
  if (!stored || !running_) return {};
  const std::string computed = running_->finish();
  if (computed == stored->base64) return {};
  return fail(ErrorCode::kCorrupt, fmt::format("{}: the body's {} is {}, the store says {}: damaged on the way or in the store",
                                               expected_.what, stored->algorithm, computed, stored->base64));
}

Result<GetInfo> RangeBody::finish(const net::HttpResponse& answer) {
  if (refused_) return fail(*refused_);
  if (collected_) {
    running_->update(answer.body);
    TRY(verify(answer));
    if (!answer.body.empty()) TRY(write(std::as_bytes(std::span(answer.body.data(), answer.body.size()))));
  }
  if (passed_on_ != expected_.range.length) {
    return fail(ErrorCode::kUnavailable,
                fmt::format("{}: body cut after {} of {} bytes", expected_.what, passed_on_, expected_.range.length));
  }
  if (!collected_) TRY(verify(answer));
  GetInfo info;
  info.etag = quoted_etag(*answer.header("etag"));
  info.object_size = expected_.object_size;
  if (const auto* modified = answer.header("last-modified")) info.mtime = parse_http_date(*modified).value_or(0);
  return info;
}

}  // namespace thermo::store
