#pragma once
// Decides about the answer to a GET before its first byte goes on: is it the version and the range that were asked for?

#include <cstdint>
#include <optional>
#include <string>

#include "net/http_client.h"
#include "store/object_store.h"
#include "store/s3/s3_checksum.h"

namespace thermo::store {

/// What becomes of a body that comes with a checksum that covers it.
enum class Verify : std::uint8_t {
  kNone,
  kStreaming,  ///< passed on as it comes; a mismatch is an error at its end
  kKeptBack,   ///< nothing is passed on before the checksum was seen to match
};

struct ExpectedBody {
  std::string what;      ///< for messages
  std::string if_match;  ///< ETag, empty: any
  std::uint64_t object_size = 0;
  ByteRange range;
  Verify verify = Verify::kNone;
};

/// Used by one exchange. As a router it looks at the head; as a sink it passes on exactly the range.
class RangeBody final : public net::BodyRouter, public BodySink {
 public:
  RangeBody(ExpectedBody expected, BodySink& target) : expected_(std::move(expected)), target_(target) {}

  [[nodiscard]] BodySink* route(const net::HttpResponse& head) override;
  [[nodiscard]] Result<void> write(std::span<const std::byte> bytes) override;

  /// After a 2xx exchange: verifies and passes on what was kept back, checks the length, and says what came.
  [[nodiscard]] Result<GetInfo> finish(const net::HttpResponse& answer);

 private:
  std::optional<Error> check_head(const net::HttpResponse& head) const;
  std::optional<Error> check_partial(const net::HttpResponse& head) const;
  std::optional<Error> check_whole(const net::HttpResponse& head) const;
  Result<void> verify(const net::HttpResponse& answer);

  const ExpectedBody expected_;
  BodySink& target_;
  std::optional<Error> refused_;
  bool collected_ = false;
  std::optional<RunningChecksum> running_;  ///< of what was passed on
  std::uint64_t passed_on_ = 0;
};

/// "bytes 0-9/100" -> {0, 10} and 100; nothing when malformed.
struct ContentRange {
  ByteRange range;
  std::uint64_t total = 0;
};
[[nodiscard]] std::optional<ContentRange> parse_content_range(std::string_view value);

}  // namespace thermo::store
