#include "net/http_server_connection.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/log.h"

namespace thermo::net {
namespace {

constexpr std::size_t kFirstBuffer = 16 * 1024;
/// An unread request body up to this size is read away so that the connection can be used again; a larger one closes it.
constexpr std::uint64_t kDrainLimit = 256 * 1024;
/// How long a closing connection waits for a silent peer, and for one that still sends a body that nobody wants: closing earlier
/// would reset the connection, and the peer would see that in place of the answer.
constexpr int kLingerMs = 500;
constexpr Nanos kLingerTotal = std::chrono::seconds(5);
constexpr std::size_t kMaxChunkLine = 4096;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

/// Header values may come from stored metadata: a line break in one must not become a header of its own.
void append_clean(std::string& out, std::string_view text) {
  for (const char c : text) out += (c == '\r' || c == '\n' || c == '\0') ? ' ' : c;
}

}  // namespace

const std::string* ServerRequest::header(std::string_view lower_name) const {
  for (const auto& [name, value] : headers) {
    if (name == lower_name) return &value;
  }
  return nullptr;
}

ServerConnection::ServerConnection(int fd, ServerSocket& socket, const std::atomic<bool>& stopping)
    : fd_(fd), socket_(socket), stopping_(stopping), buffer_(kFirstBuffer) {}

void ServerConnection::serve(const Handler& handler, std::atomic<bool>& busy) {
  std::string head;
  for (;;) {
    const HeadRead got = read_head(head, busy);
    if (got == HeadRead::kTooLarge) refuse(431);
    if (got != HeadRead::kHead) break;
    const bool go_on = serve_one(head, handler);
    busy.store(false);
    if (!go_on || stopping_.load()) break;
  }
  // Who still owes the peer a look at the answer lingers; an aborted one leaves with a reset.
  if (abort_) {
    const ::linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    return;
  }
  if (!broken_) linger();
}

ServerConnection::HeadRead ServerConnection::read_head(std::string& head, std::atomic<bool>& busy) {
  std::size_t searched = 0;
  for (;;) {
    const std::string_view have(reinterpret_cast<const char*>(buffer_.data()) + begin_, end_ - begin_);
    if (!have.empty()) busy.store(true);
    // Some clients send an empty line after a body; it is no request.
    if (searched == 0 && have.starts_with("\r\n")) {
      begin_ += 2;
      continue;
    }
    if (const auto at = have.find("\r\n\r\n", searched > 3 ? searched - 3 : 0); at != std::string_view::npos) {
      if (at + 4 > kMaxHeadBytes) return HeadRead::kTooLarge;
      head.assign(have.substr(0, at + 4));
      begin_ += at + 4;
      return HeadRead::kHead;
    }
    if (have.size() > kMaxHeadBytes) return HeadRead::kTooLarge;
    searched = have.size();
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
    const auto n = socket_.read(std::span(buffer_).subspan(end_));
    if (!n || *n == 0) {
      broken_ = !n;
      return HeadRead::kClosed;
    }
    end_ += *n;
  }
}

void ServerConnection::refuse(int status) {
  close_ = true;
  head_ = {};
  bodyless_ = head_sent_ = false;
  (void)respond(status, {}, {});
  (void)flush({}, false);
}

bool ServerConnection::serve_one(std::string_view head_text, const Handler& handler) {
  auto parsed = parse_request_head(head_text);
  if (!parsed) {
    refuse(400);
    return false;
  }
  head_ = std::move(*parsed);
  expects_continue_ = head_.expects_continue;
  body_left_ = head_.request.chunked ? 0 : head_.request.content_length;
  chunk_left_ = 0;
  chunks_begun_ = false;
  chunks_done_ = !head_.request.chunked;
  pending_head_.clear();
  head_sent_ = false;
  bodyless_ = false;
  announced_ = -1;
  sent_ = 0;
  close_ = !head_.keep_alive;
  handler(*this);
  return finish();
}

bool ServerConnection::finish() {
  if (abort_ || broken_) return false;
  // Closing without an answer is a choice (a dropped request); falling silent is not.
  if (!head_sent_ && !close_) (void)respond(500, {}, {});
  if (!flush({}, false)) return false;
  if (announced_ >= 0 && !bodyless_ && sent_ < static_cast<std::uint64_t>(announced_)) return false;
  if (close_) return false;
  if (body_done()) return true;
  // The client of an unanswered "Expect" does not send its body, or does: nobody can know. So it closes.
  if (expects_continue_) return false;
  std::array<std::byte, 16 * 1024> sink;
  for (std::uint64_t drained = 0; drained < kDrainLimit;) {
    const auto n = read_body(sink);
    if (!n) return false;
    if (*n == 0) return true;
    drained += *n;
  }
  return false;
}

void ServerConnection::linger() {
  socket_.finish_writing();
  const MonoTime until = Clock::system().now() + kLingerTotal;
  std::array<std::byte, 16 * 1024> sink;
  while (Clock::system().now() < until) {
    pollfd wait{fd_, POLLIN, 0};
    if (::poll(&wait, 1, kLingerMs) <= 0) return;
    if (::recv(fd_, sink.data(), sink.size(), MSG_DONTWAIT) <= 0) return;
  }
}

bool ServerConnection::body_done() const { return head_.request.chunked ? chunks_done_ : body_left_ == 0; }

Result<void> ServerConnection::continue_if_expected() {
  if (!expects_continue_) return {};
  expects_continue_ = false;
  if (head_sent_) return {};
  std::string_view line = "HTTP/1.1 100 Continue\r\n\r\n";
  iovec part{const_cast<char*>(line.data()), line.size()};
  return socket_.write({&part, 1}, false);
}

Result<std::size_t> ServerConnection::take(std::span<std::byte> dst) {
  if (begin_ < end_) {
    const std::size_t n = std::min(dst.size(), end_ - begin_);
    std::memcpy(dst.data(), buffer_.data() + begin_, n);
    begin_ += n;
    return n;
  }
  auto n = socket_.read(dst);
  if (n && *n == 0) n = fail(ErrorCode::kUnavailable, "read request body: the client closed the connection in the middle");
  if (!n) broken_ = true;
  return n;
}

Result<std::size_t> ServerConnection::read_body(std::span<std::byte> dst) {
  if (body_done() || dst.empty()) return 0;
  TRY(continue_if_expected());
  if (head_.request.chunked) return read_chunked(dst);
  TRY_ASSIGN(const std::size_t n, take(dst.first(std::min<std::uint64_t>(dst.size(), body_left_))));
  body_left_ -= n;
  return n;
}

Result<std::string> ServerConnection::read_line() {
  std::string line;
  for (;;) {
    std::byte one{};
    TRY_ASSIGN(const std::size_t n, take({&one, 1}));
    if (n == 0) return fail(ErrorCode::kUnavailable, "read request body: the client closed the connection in the middle");
    line += static_cast<char>(one);
    if (line.ends_with("\r\n")) {
      line.resize(line.size() - 2);
      return line;
    }
    if (line.size() > kMaxChunkLine) {
      close_ = true;
      return fail(ErrorCode::kInvalidArgument, "chunked body: a chunk header is longer than 4 KiB");
    }
  }
}

Result<std::size_t> ServerConnection::read_chunked(std::span<std::byte> dst) {
  if (chunk_left_ == 0) {
    if (chunks_begun_) TRY(read_line());
    chunks_begun_ = true;
    TRY_ASSIGN(const std::string line, read_line());
    const auto [ptr, ec] = std::from_chars(line.data(), line.data() + line.size(), chunk_left_, 16);
    if (ec != std::errc() || (ptr != line.data() + line.size() && *ptr != ';' && *ptr != ' ')) {
      close_ = true;
      chunks_done_ = true;
      return fail(ErrorCode::kInvalidArgument, fmt::format("chunked body: '{}' is not a chunk size", line));
    }
    if (chunk_left_ == 0) {
      chunks_done_ = true;
      for (;;) {  // trailers of the transfer coding end with an empty line
        TRY_ASSIGN(const std::string trailer, read_line());
        if (trailer.empty()) return 0;
      }
    }
  }
  TRY_ASSIGN(const std::size_t n, take(dst.first(std::min<std::uint64_t>(dst.size(), chunk_left_))));
  chunk_left_ -= n;
  return n;
}

Result<std::string> ServerConnection::read_all(std::uint64_t limit) {
  const auto too_large = [&] {
    return fail(ErrorCode::kInvalidArgument, fmt::format("the request body is larger than the limit of {} bytes", limit));
  };
  if (head_.request.content_length > limit) return too_large();
  std::string body;
  if (!head_.request.chunked) body.reserve(head_.request.content_length);
  std::size_t have = 0;
  for (;;) {
    const std::uint64_t want = head_.request.chunked ? 256 * 1024 : body_left_;
    body.resize(have + want);
    TRY_ASSIGN(const std::size_t n, read_body(std::as_writable_bytes(std::span(body)).subspan(have)));
    have += n;
    if (have > limit) return too_large();
    if (n == 0) break;
  }
  body.resize(have);
  return body;
}

Result<void> ServerConnection::send_head(int status, const std::vector<Header>& headers, std::int64_t content_length) {
  if (head_sent_) return fail(ErrorCode::kInternal, "an answer was begun twice");
  head_sent_ = true;
  announced_ = content_length;
  bodyless_ = head_.request.method == "HEAD" || status < 200 || status == 204 || status == 304;
  // The client may wait for 100 for ever, or send a body that is not read: the next request could not be told from it.
  if (expects_continue_ && !body_done()) close_ = true;
  if (body_left_ > kDrainLimit || stopping_.load()) close_ = true;
  pending_head_ = fmt::format("HTTP/1.1 {} {}\r\n", status, reason_phrase(status));
  for (const auto& [name, value] : headers) {
    append_clean(pending_head_, name);
    pending_head_ += ": ";
    append_clean(pending_head_, value);
    pending_head_ += "\r\n";
  }
  if (content_length >= 0) pending_head_ += fmt::format("Content-Length: {}\r\n", content_length);
  pending_head_ += close_ ? "Connection: close\r\n\r\n" : "\r\n";
  return {};
}

Result<void> ServerConnection::flush(std::span<const std::byte> body, bool more) {
  if (pending_head_.empty() && body.empty()) return {};
  std::array<iovec, 2> parts{
      {{pending_head_.data(), pending_head_.size()}, {const_cast<void*>(static_cast<const void*>(body.data())), body.size()}}};
  auto done = socket_.write(parts, more);
  pending_head_.clear();
  if (!done) broken_ = true;
  return done;
}

Result<void> ServerConnection::send_body(std::span<const std::byte> bytes) {
  if (bodyless_) bytes = {};
  sent_ += bytes.size();
  return flush(bytes, false);
}

Result<void> ServerConnection::respond(int status, const std::vector<Header>& headers, std::string_view body) {
  const bool none = status == 204 || status == 304;
  TRY(send_head(status, headers, none ? -1 : static_cast<std::int64_t>(body.size())));
  return send_body(bytes_of(body));
}

Result<void> ServerConnection::send_file(int fd, std::uint64_t offset, std::uint64_t length) {
  if (bodyless_ || length == 0) return flush({}, false);
  TRY(flush({}, true));
  auto done = socket_.send_file(fd, offset, length);
  if (done) {
    sent_ += length;
  } else {
    broken_ = true;
  }
  return done;
}

void ServerConnection::close(bool abort) {
  close_ = true;
  abort_ = abort_ || abort;
}

}  // namespace thermo::net
