#pragma once
// One libcurl-multi loop on a thread of its own; callers block on their transfer. HTTP/1.1, keep-alive, no total timeout but the
// caller's deadline plus a stall limit.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/body_sink.h"
#include "base/context.h"
#include "base/metrics.h"
#include "base/result.h"

namespace thermo::net {

using Header = std::pair<std::string, std::string>;  ///< name as sent; compare case-insensitively

struct HttpRequest {
  std::string method = "GET";
  std::string url;  ///< absolute, already encoded: sent as it is
  std::vector<Header> headers;
  std::span<const std::byte> body;  ///< must live until the call returns; re-sent from the start on a retry by curl
  std::uint64_t expected_body = 0;  ///< bytes of the answer's body if known; sizes curl's buffer
};

struct HttpResponse {
  int status = 0;
  std::vector<Header> headers;  ///< names lower-cased
  std::string body;             ///< of answers that did not go to the sink
  [[nodiscard]] const std::string* header(std::string_view lower_name) const;
  std::string remote;  ///< address that answered
  double first_byte_ms = 0;
};

/// Decides, once status and headers are known, whether the body streams to a sink (2xx of a GET) or is collected (errors, XML).
class BodyRouter {
 public:
  virtual ~BodyRouter() = default;
  /// nullptr: collect into HttpResponse::body (at most 16 MiB). On the loop thread; must not block.
  [[nodiscard]] virtual BodySink* route(const HttpResponse& head) = 0;
};

struct HttpClientOptions {
  std::size_t max_connections = 64;  ///< in total
  std::size_t max_connections_per_host = 64;
  Nanos connect_timeout = std::chrono::seconds(3);
  Nanos stall_timeout = std::chrono::seconds(10);  ///< no byte for this long: kTimeout
  Nanos max_idle = std::chrono::seconds(15);       ///< idle connections older than this are not used again
  std::string ca_bundle;                           ///< file; empty = the system's
  bool verify_tls = true;
  std::string user_agent = "thermocline/0.1";
  const Clock* clock = &Clock::system();
};

/// Thread-safe.
class HttpClient {
 public:
  virtual ~HttpClient() = default;
  /// Performs one exchange. Any HTTP status is success here; errors are transport errors: kUnavailable (refused, reset, DNS),
  /// kTimeout, kTls, kCancelled, or the error that the sink returned. A reset on a reused connection before any answer is retried
  /// once.
  [[nodiscard]] virtual Result<HttpResponse> perform(const RequestContext& ctx, const HttpRequest& request,
                                                     BodyRouter* router) = 0;
};

[[nodiscard]] std::unique_ptr<HttpClient> make_http_client(const HttpClientOptions& options);

}  // namespace thermo::net
