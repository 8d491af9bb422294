#pragma once
// Decides about the answer to a GET before its first byte goes on: is it the version and the range that were asked for?

#include <cstdint>
#include <optional>
#include <string>

#include "net/http_client.h"
#include "store/object_store.h"

namespace thermo::store {

struct ExpectedBody {
  std::string what;      ///< for messages
  std::string if_match;  ///< ETag, empty: any
  std::uint64_t object_size = 0;
  ByteRange range;
  bool collect_verifiable = false;  ///< keep the body back when it comes with a checksum that covers it
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
  Result<void> verify(const net::HttpResponse& answer) const;

  const ExpectedBody expected_;
  BodySink& target_;
  std::optional<Error> refused_;
  bool collected_ = false;
  std::uint64_t passed_on_ = 0;
};

/// "bytes 0-9/100" -> {0, 10} and 100; nothing when malformed.
struct ContentRange {
  ByteRange range;
  std::uint64_t total = 0;
};
[[nodiscard]] std::optional<ContentRange> parse_content_range(std::string_view value);

}  // namespace thermo::store
