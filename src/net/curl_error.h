#pragma once
// What a failed exchange means, in words that name the peer and the mend.

#include <curl/curl.h>

#include "base/error.h"
#include "net/curl_transfer.h"

namespace thermo::net {

/// "host:port" of a URL, the default port written out.
[[nodiscard]] std::string host_and_port(std::string_view url);
/// The Error of a transfer that ended with `code` (not CURLE_OK).
[[nodiscard]] Error curl_error(const Transfer& transfer, CURLcode code, const HttpClientOptions& options);
/// The Error of a transfer without progress for `stalled`.
[[nodiscard]] Error stall_error(const Transfer& transfer, Nanos stalled);

}  // namespace thermo::net
