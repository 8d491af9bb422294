#pragma once
// A small HTTP/1.1 server: one thread per connection with a cap, Boost.Beast parses the head, the handler reads and writes
// bodies.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/http_client.h"

namespace thermo::net {

/// Head of a request as received.
struct ServerRequest {
  std::string method;
  std::string target;           ///< raw: path and query, still encoded
  std::vector<Header> headers;  ///< names lower-cased, in order
  bool has_length = false;
  std::uint64_t content_length = 0;
  bool chunked = false;  ///< Transfer-Encoding: chunked; read_body decodes it
  [[nodiscard]] const std::string* header(std::string_view lower_name) const;
};

/// One exchange on one connection; used by the handler's thread only.
class Exchange {
 public:
  virtual ~Exchange() = default;
  [[nodiscard]] virtual const ServerRequest& request() const = 0;
  /// Reads up to dst.size() bytes of the body; 0 = end.
  [[nodiscard]] virtual Result<std::size_t> read_body(std::span<std::byte> dst) = 0;
  /// The whole body, kInvalidArgument when larger than `limit`.
  [[nodiscard]] virtual Result<std::string> read_all(std::uint64_t limit) = 0;
  /// Sends the status line and headers; `content_length` < 0: no body follows and none is announced. HEAD: announce the length,
  /// send nothing. With a "transfer-encoding" header and `content_length` < 0 the body is what send_body gets, already framed. A
  /// body that ends short of the announced length closes the connection. The head may wait for the first bytes of the body and
  /// leave with them.
  [[nodiscard]] virtual Result<void> send_head(int status, const std::vector<Header>& headers, std::int64_t content_length) = 0;
  [[nodiscard]] virtual Result<void> send_body(std::span<const std::byte> bytes) = 0;
  /// send_head + send_body.
  [[nodiscard]] virtual Result<void> respond(int status, const std::vector<Header>& headers, std::string_view body) = 0;
  /// Sends `length` bytes of a file from `offset` by sendfile.
  [[nodiscard]] virtual Result<void> send_file(int fd, std::uint64_t offset, std::uint64_t length) = 0;
  /// Closes the connection after this exchange; with `abort` at once and with a reset.
  virtual void close(bool abort) = 0;
  /// The socket, for splicing; -1 when there is none (TLS). Before bytes are moved into it: send_body({}) so that the head leaves
  /// first, and after it note_sent().
  [[nodiscard]] virtual int socket() const = 0;
  /// Tells that the handler itself put `bytes` of the announced body into socket().
  virtual void note_sent(std::uint64_t bytes) = 0;
  /// A slot for what the handler keeps per connection (an upstream connection, a pace); lives as long as the connection.
  [[nodiscard]] virtual std::shared_ptr<void>& connection_state() = 0;
};

struct HttpServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;             ///< 0: any free one
  std::size_t max_connections = 256;  ///< beyond it: 503 and close
  Nanos idle_timeout = std::chrono::seconds(65);
  std::string tls_certificate;  ///< PEM files; both empty: plain http
  std::string tls_key;
};

/// Starts listening on construction, serves until destroyed.
class HttpServer {
 public:
  virtual ~HttpServer() = default;
  [[nodiscard]] virtual std::uint16_t port() const = 0;
  /// Stops accepting, ends idle connections, waits for running exchanges.
  virtual void stop() = 0;
};

using Handler = std::function<void(Exchange&)>;
[[nodiscard]] Result<std::unique_ptr<HttpServer>> start_http_server(const HttpServerOptions& options, Handler handler);

}  // namespace thermo::net
