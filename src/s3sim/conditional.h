#pragma once
// Private to s3sim: Range, If-Match and their kin, as pure functions.

#include <cstdint>
#include <optional>
#include <string_view>

#include "s3sim/types.h"

namespace thermo::s3sim {

struct ByteSpan {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  bool partial = false;  ///< 206 with Content-Range, else 200
};

/// The bytes that a Range header asks of an object of `size` bytes; nullopt = 416. A header that S3 ignores (several ranges, not
/// "bytes", backwards, no number) gives the whole object.
[[nodiscard]] std::optional<ByteSpan> resolve_range(std::string_view range, std::uint64_t size);

/// Is `etag` (quoted) among the tags of an If-Match header: "*", one, or a comma list, quotes optional?
[[nodiscard]] bool etag_matches(std::string_view header, std::string_view etag);

enum class Condition { kProceed, kNotModified, kFailed };
/// The four conditional headers of a GET or HEAD in the order of RFC 9110.
[[nodiscard]] Condition check_read(const net::ServerRequest& request, const Object& object);

/// Seconds since the epoch of "Mon, 30 Nov 2026 22:02:38 GMT".
[[nodiscard]] std::optional<std::int64_t> parse_http_time(std::string_view text);

}  // namespace thermo::s3sim
