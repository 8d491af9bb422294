#pragma once
// Private to net: one connection = one thread that reads heads and runs the handler until either side closes.

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "net/http_server.h"
#include "net/http_server_parse.h"
#include "net/http_server_socket.h"

namespace thermo::net {

/// Serves requests on a socket. Everything but `busy` belongs to the connection's thread.
class ServerConnection final : public Exchange {
 public:
  ServerConnection(int fd, ServerSocket& socket, const std::atomic<bool>& stopping);

  /// Returns when the connection is to be closed. `busy` is true while a request is being served, so that stop() can tell idle
  /// ones.
  void serve(const Handler& handler, std::atomic<bool>& busy);

  const ServerRequest& request() const override { return head_.request; }
  Result<std::size_t> read_body(std::span<std::byte> dst) override;
  Result<std::string> read_all(std::uint64_t limit) override;
  Result<void> send_head(int status, const std::vector<Header>& headers, std::int64_t content_length) override;
  Result<void> send_body(std::span<const std::byte> bytes) override;
  Result<void> respond(int status, const std::vector<Header>& headers, std::string_view body) override;
  Result<void> send_file(int fd, std::uint64_t offset, std::uint64_t length) override;
  void close(bool abort) override;
  int socket() const override { return socket_.raw_fd(); }
  void note_sent(std::uint64_t bytes) override { sent_ += bytes; }
  std::shared_ptr<void>& connection_state() override { return state_; }

 private:
  enum class HeadRead { kHead, kClosed, kTooLarge };
  [[nodiscard]] HeadRead read_head(std::string& head, std::atomic<bool>& busy);
  [[nodiscard]] bool serve_one(std::string_view head_text, const Handler& handler);
  void refuse(int status);
  [[nodiscard]] bool finish();
  void linger();

  [[nodiscard]] bool body_done() const;
  [[nodiscard]] Result<void> continue_if_expected();
  [[nodiscard]] Result<std::size_t> take(std::span<std::byte> dst);
  [[nodiscard]] Result<std::size_t> read_chunked(std::span<std::byte> dst);
  [[nodiscard]] Result<std::string> read_line();
  [[nodiscard]] Result<void> flush(std::span<const std::byte> body, bool more);

  const int fd_;
  ServerSocket& socket_;
  const std::atomic<bool>& stopping_;
  std::shared_ptr<void> state_;

  std::vector<std::byte> buffer_;  ///< received and not consumed: [begin_, end_)
  std::size_t begin_ = 0, end_ = 0;

  ParsedHead head_;
  bool expects_continue_ = false;
  std::uint64_t body_left_ = 0;  ///< of a body with a length
  std::uint64_t chunk_left_ = 0;
  bool chunks_begun_ = false, chunks_done_ = false;

  std::string pending_head_;  ///< formatted, not yet sent
  bool head_sent_ = false;
  bool bodyless_ = false;  ///< HEAD, 1xx, 204, 304: bytes of a body are swallowed
  std::int64_t announced_ = -1;
  std::uint64_t sent_ = 0;
  bool close_ = false, abort_ = false, broken_ = false;
};

}  // namespace thermo::net
