#pragma once
// Private to s3sim: the other side of the proxy. One upstream connection per client connection, raw sockets, nothing buffered
// whole.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "s3sim/answer.h"
#include "s3sim/pacer.h"
#include "s3sim/types.h"

namespace thermo::s3sim {

/// Where the upstream listens, resolved once.
struct UpstreamAddress {
  std::array<std::byte, 128> address{};  ///< a sockaddr
  unsigned address_length = 0;
  std::string text;  ///< "host:port", for messages
};
/// "http://host:port". kInvalidArgument for other forms, kUnavailable when the name has no address.
[[nodiscard]] Result<UpstreamAddress> parse_upstream(const std::string& url);

struct ResponseHead {
  int status = 0;
  Headers headers;           ///< names as sent, without connection, keep-alive and content-length
  std::int64_t length = -1;  ///< Content-Length
  bool chunked = false;
  bool keep_alive = true;
};
/// From the status line to the empty line.
[[nodiscard]] Result<ResponseHead> parse_response_head(std::string_view head);

/// Finds the end of a chunked body that passes by unchanged.
class ChunkScanner {
 public:
  /// How many of these bytes belong to the body.
  [[nodiscard]] std::size_t feed(std::span<const std::byte> bytes);
  [[nodiscard]] bool done() const { return state_ == State::kDone; }

 private:
  enum class State { kSize, kExtension, kSizeEnd, kData, kDataEnd, kTrailer, kTrailerEnd, kDone };
  State state_ = State::kSize;
  std::uint64_t left_ = 0;
  std::size_t line_ = 0;  ///< characters of the trailer line so far
};

/// A connection with a pipe for splicing. Used by one thread; the Stopper may shut its socket down.
class Upstream {
 public:
  explicit Upstream(Stopper& stopper) : stopper_(stopper) {}
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;
  ~Upstream() { disconnect(); }

  /// Connected and, as far as can be seen, not closed by the peer. `reused`: it was there already.
  [[nodiscard]] Result<void> connect(const UpstreamAddress& address, bool& reused);
  void disconnect();
  [[nodiscard]] Result<void> send(std::span<const std::byte> bytes);
  /// The next final answer; 1xx are skipped.
  [[nodiscard]] Result<ResponseHead> read_head();
  /// Buffered bytes first, then the socket; 0 = closed.
  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> dst);
  /// Bytes received and not consumed.
  [[nodiscard]] std::span<const std::byte> buffered() const { return std::span(buffer_).subspan(begin_, end_ - begin_); }
  void consume(std::size_t n) { begin_ += n; }
  /// Reads what is there into the empty buffer; 0 = closed.
  [[nodiscard]] Result<std::size_t> fill();
  /// Moves up to `max` bytes from this socket into `fd` without copying them through this process; 0 = closed.
  /// kNotSupported: the kernel does not splice these descriptors.
  [[nodiscard]] Result<std::size_t> splice_to(int fd, std::uint64_t max);

 private:
  [[nodiscard]] Result<void> drain_pipe(int fd, std::size_t bytes);

  Stopper& stopper_;
  int fd_ = -1;
  std::array<int, 2> pipe_{-1, -1};
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;
};

/// The body of an answer of `upstream`; disconnects it when the body does not end cleanly.
[[nodiscard]] std::unique_ptr<BodySource> upstream_body(Upstream& upstream, const ResponseHead& head);

}  // namespace thermo::s3sim
