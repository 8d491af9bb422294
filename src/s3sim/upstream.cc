#include "s3sim/upstream.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace thermo::s3sim {
namespace {

constexpr std::size_t kBuffer = 256 * 1024;
constexpr int kPipeBytes = 1 << 20;
constexpr int kConnectMs = 3000;
constexpr int kSilentSeconds = 60;

Error lost(int err, std::string_view what) {
  const bool silent = err == EAGAIN || err == EWOULDBLOCK;
  return Error(silent ? ErrorCode::kTimeout : ErrorCode::kUnavailable,
               fmt::format("{} the upstream: {}", what, std::strerror(err)))
      .with_errno(err);
}

}  // namespace

Result<UpstreamAddress> parse_upstream(const std::string& url) {
  const auto bad = [&] { return fail(ErrorCode::kInvalidArgument, fmt::format("upstream '{}': write http://host:port", url)); };
  std::string_view rest = url;
  if (!rest.starts_with("http://")) return bad();
  rest.remove_prefix(7);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.empty() || rest.find('/') != std::string_view::npos) return bad();
  const std::size_t colon = rest.rfind(':');
  const std::string host(rest.substr(0, colon));
  const std::string port(colon == std::string_view::npos ? std::string_view("80") : rest.substr(colon + 1));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int rc = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); rc != 0)
    return fail(ErrorCode::kUnavailable, fmt::format("upstream '{}': {}", url, ::gai_strerror(rc)));
  UpstreamAddress out;
  out.text = std::string(rest);
  out.address_length = found->ai_addrlen;
  std::memcpy(out.address.data(), found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return out;
}

Result<void> Upstream::connect(const UpstreamAddress& address, bool& reused) {
  if (fd_ >= 0) {
    // Readable between exchanges means closed (or talking out of turn): of no use either way.
    pollfd state{fd_, POLLIN, 0};
    reused = begin_ == end_ && ::poll(&state, 1, 0) == 0;
    if (reused) return {};
    disconnect();
  }
  reused = false;
  sockaddr_storage storage{};
  std::memcpy(&storage, address.address.data(), address.address_length);
  const int fd = ::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(errno_error(errno, "connect to the upstream"));
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  timeval connecting{kConnectMs / 1000, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &connecting, sizeof connecting);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&storage), address.address_length) != 0) {
    const int err = errno;
    ::close(fd);
    return fail(lost(err, fmt::format("connect to {},", address.text)));
  }
  timeval silent{kSilentSeconds, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &silent, sizeof silent);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &silent, sizeof silent);
  fd_ = fd;
  begin_ = end_ = 0;
  buffer_.resize(kBuffer);
  stopper_.watch(fd_);
  return {};
}

void Upstream::disconnect() {
  if (fd_ >= 0) {
    stopper_.forget(fd_);
    ::close(fd_);
  }
  fd_ = -1;
  // A pipe that still holds bytes of a broken exchange must not be used for another.
  for (int& end : pipe_) {
    if (end >= 0) ::close(end);
    end = -1;
  }
}

Result<void> Upstream::send(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(lost(errno, "send to"));
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Result<std::size_t> Upstream::fill() {
  begin_ = end_ = 0;
  for (;;) {
    const ssize_t n = ::recv(fd_, buffer_.data(), buffer_.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(lost(errno, "receive from"));
    end_ = static_cast<std::size_t>(n);
    return end_;
  }
}

Result<std::size_t> Upstream::read(std::span<std::byte> dst) {
  if (begin_ == end_) {
    TRY_ASSIGN(const std::size_t got, fill());
    if (got == 0) return 0;
  }
  const std::size_t n = std::min(dst.size(), end_ - begin_);
  std::memcpy(dst.data(), buffer_.data() + begin_, n);
  begin_ += n;
  return n;
}

Result<ResponseHead> Upstream::read_head() {
  for (;;) {
    const std::string_view have(reinterpret_cast<const char*>(buffer_.data()) + begin_, end_ - begin_);
    if (const std::size_t at = have.find("\r\n\r\n"); at != std::string_view::npos) {
      TRY_ASSIGN(ResponseHead head, parse_response_head(have.substr(0, at + 4)));
      begin_ += at + 4;
      if (head.status >= 200) return head;
      continue;
    }
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ == buffer_.size()) return fail(ErrorCode::kUnavailable, "the upstream's answer has a head over 256 KiB");
    const ssize_t n = ::recv(fd_, buffer_.data() + end_, buffer_.size() - end_, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(lost(errno, "receive from"));
    if (n == 0) return fail(ErrorCode::kUnavailable, "the upstream closed the connection before it answered");
    end_ += static_cast<std::size_t>(n);
  }
}

Result<void> Upstream::drain_pipe(int fd, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = ::splice(pipe_[0], nullptr, fd, nullptr, bytes, SPLICE_F_MOVE);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail(lost(n == 0 ? EPIPE : errno, "pass on an answer of"));
    bytes -= static_cast<std::size_t>(n);
  }
  return {};
}

Result<std::size_t> Upstream::splice_to(int fd, std::uint64_t max) {
  if (pipe_[0] < 0) {
    if (::pipe2(pipe_.data(), O_CLOEXEC) != 0) return fail(ErrorCode::kNotSupported, "no pipe to splice through");
    ::fcntl(pipe_[1], F_SETPIPE_SZ, kPipeBytes);
  }
  for (;;) {
    const ssize_t n = ::splice(fd_, nullptr, pipe_[1], nullptr, std::min<std::uint64_t>(max, kPipeBytes), SPLICE_F_MOVE);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EINVAL) return fail(ErrorCode::kNotSupported, "these descriptors cannot be spliced");
    if (n < 0) return fail(lost(errno, "receive from"));
    if (n > 0) TRY(drain_pipe(fd, static_cast<std::size_t>(n)));
    return static_cast<std::size_t>(n);
  }
}

}  // namespace thermo::s3sim
