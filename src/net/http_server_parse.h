#pragma once
// Private to net: the head of one request, parsed by Boost.Beast behind this border so that its headers cost one translation
// unit.

#include <string_view>

#include "net/http_server.h"

namespace thermo::net {

struct ParsedHead {
  ServerRequest request;
  bool keep_alive = true;
  bool expects_continue = false;
};

/// Largest head that is read, request line and headers together; beyond it the answer is 431.
inline constexpr std::size_t kMaxHeadBytes = 64 * 1024;

/// `head` is everything up to and including the empty line. kInvalidArgument says what is wrong with it (answer 400 and close).
[[nodiscard]] Result<ParsedHead> parse_request_head(std::string_view head);

/// Reason phrase of a status ("Not Found"); "Unknown" for a number that has none.
[[nodiscard]] std::string_view reason_phrase(int status);

}  // namespace thermo::net
