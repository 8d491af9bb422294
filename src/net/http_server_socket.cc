#include "net/http_server_socket.h"

#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace thermo::net {
namespace {

Error socket_error(int err, std::string_view what) {
  if (err == EAGAIN || err == EWOULDBLOCK)
    return Error(ErrorCode::kTimeout, fmt::format("{}: the peer is silent", what)).with_errno(err);
  return Error(ErrorCode::kUnavailable, fmt::format("{}: connection lost", what)).with_errno(err);
}

class PlainSocket final : public ServerSocket {
 public:
  explicit PlainSocket(int fd) : fd_(fd) {}

  Result<std::size_t> read(std::span<std::byte> dst) override {
    for (;;) {
      const ssize_t n = ::recv(fd_, dst.data(), dst.size(), 0);
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) return fail(socket_error(errno, "read request"));
    }
  }

  Result<void> write(std::span<iovec> parts, bool more) override {
    std::size_t first = 0;
    while (first < parts.size()) {
      if (parts[first].iov_len == 0) {
        ++first;
        continue;
      }
      msghdr message{};
      message.msg_iov = &parts[first];
      message.msg_iovlen = parts.size() - first;
      const ssize_t n = ::sendmsg(fd_, &message, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
      if (n < 0) {
        if (errno == EINTR) continue;
        return fail(socket_error(errno, "send answer"));
      }
      std::size_t left = static_cast<std::size_t>(n);
      while (first < parts.size() && left >= parts[first].iov_len) left -= parts[first++].iov_len;
      if (first < parts.size() && left > 0) {
        parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + left;
        parts[first].iov_len -= left;
      }
    }
    return {};
  }

  Result<void> send_file(int fd, std::uint64_t offset, std::uint64_t length) override {
    off_t at = static_cast<off_t>(offset);
    while (length > 0) {
      const ssize_t n = ::sendfile(fd_, fd, &at, std::min<std::uint64_t>(length, 1U << 30));
      if (n == 0) return fail(ErrorCode::kCorrupt, "send answer: the file became shorter");
      if (n < 0) {
        if (errno == EINTR) continue;
        return fail(socket_error(errno, "send answer"));
      }
      length -= static_cast<std::uint64_t>(n);
    }
    return {};
  }

  int raw_fd() const override { return fd_; }
  void finish_writing() override { ::shutdown(fd_, SHUT_WR); }

 private:
  const int fd_;
};

std::string tls_reason() {
  char text[160] = "unknown";
  if (const auto code = ERR_get_error()) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return text;
}

}  // namespace

class TlsContext {
 public:
  explicit TlsContext(SSL_CTX* ctx) : ctx_(ctx) {}
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext() { SSL_CTX_free(ctx_); }
  [[nodiscard]] SSL_CTX* get() const { return ctx_; }

 private:
  SSL_CTX* ctx_;
};

namespace {

class TlsSocket final : public ServerSocket {
 public:
  TlsSocket(int fd, SSL* ssl, std::shared_ptr<TlsContext> context) : fd_(fd), ssl_(ssl), context_(std::move(context)) {}
  TlsSocket(const TlsSocket&) = delete;
  TlsSocket& operator=(const TlsSocket&) = delete;
  ~TlsSocket() override { SSL_free(ssl_); }

  Result<std::size_t> read(std::span<std::byte> dst) override {
    const int n = SSL_read(ssl_, dst.data(), static_cast<int>(std::min<std::size_t>(dst.size(), 1U << 20)));
    if (n > 0) return static_cast<std::size_t>(n);
    const int why = SSL_get_error(ssl_, n);
    ERR_clear_error();
    if (why == SSL_ERROR_ZERO_RETURN) return 0;
    return fail(socket_error(why == SSL_ERROR_WANT_READ ? EAGAIN : ECONNRESET, "read request"));
  }

  Result<void> write(std::span<iovec> parts, bool /*more*/) override {
    std::size_t all = 0;
    for (const iovec& part : parts) all += part.iov_len;
    if (all > kOneRecord) {
      for (const iovec& part : parts) TRY(write_all(bytes_of(part)));
      return {};
    }
    // A head with a small body is one record and one packet, not two.
    std::vector<std::byte> joined;
    for (const iovec& part : parts) joined.insert(joined.end(), bytes_of(part).begin(), bytes_of(part).end());
    return write_all(joined);
  }

  Result<void> send_file(int fd, std::uint64_t offset, std::uint64_t length) override {
    std::vector<std::byte> buffer(std::min<std::uint64_t>(length, 64 * 1024));
    while (length > 0) {
      const ssize_t n = ::pread(fd, buffer.data(), std::min<std::uint64_t>(length, buffer.size()), static_cast<off_t>(offset));
      if (n < 0) return fail(errno_error(errno, "read the file of an answer"));
      if (n == 0) return fail(ErrorCode::kCorrupt, "send answer: the file became shorter");
      TRY(write_all({buffer.data(), static_cast<std::size_t>(n)}));
      offset += static_cast<std::uint64_t>(n);
      length -= static_cast<std::uint64_t>(n);
    }
    return {};
  }

  int raw_fd() const override { return -1; }
  void finish_writing() override {
    SSL_shutdown(ssl_);
    ERR_clear_error();
    ::shutdown(fd_, SHUT_WR);
  }

 private:
  static constexpr std::size_t kOneRecord = 16 * 1024;
  static std::span<const std::byte> bytes_of(const iovec& part) {
    return {static_cast<const std::byte*>(part.iov_base), part.iov_len};
  }

  Result<void> write_all(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const int n = SSL_write(ssl_, bytes.data(), static_cast<int>(std::min<std::size_t>(bytes.size(), 1U << 20)));
      if (n <= 0) {
        const int why = SSL_get_error(ssl_, n);
        ERR_clear_error();
        return fail(socket_error(why == SSL_ERROR_WANT_WRITE ? EAGAIN : ECONNRESET, "send answer"));
      }
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return {};
  }

  const int fd_;
  SSL* ssl_;
  std::shared_ptr<TlsContext> context_;
};

}  // namespace

Result<std::shared_ptr<TlsContext>> make_tls_context(const std::string& certificate, const std::string& key) {
  auto context = std::make_shared<TlsContext>(SSL_CTX_new(TLS_server_method()));
  if (!context->get()) return fail(ErrorCode::kTls, fmt::format("cannot set up TLS: {}", tls_reason()));
  if (SSL_CTX_use_certificate_chain_file(context->get(), certificate.c_str()) != 1)
    return fail(ErrorCode::kTls,
                fmt::format("TLS certificate '{}' cannot be used (PEM expected): {}", certificate, tls_reason()));
  if (SSL_CTX_use_PrivateKey_file(context->get(), key.c_str(), SSL_FILETYPE_PEM) != 1)
    return fail(ErrorCode::kTls,
                fmt::format("TLS key '{}' cannot be used with certificate '{}': {}", key, certificate, tls_reason()));
  return context;
}

std::unique_ptr<ServerSocket> make_plain_socket(int fd) { return std::make_unique<PlainSocket>(fd); }

Result<std::unique_ptr<ServerSocket>> make_tls_socket(int fd, const std::shared_ptr<TlsContext>& context) {
  SSL* ssl = SSL_new(context->get());
  if (!ssl) return fail(ErrorCode::kTls, fmt::format("cannot start TLS: {}", tls_reason()));
  auto socket = std::make_unique<TlsSocket>(fd, ssl, context);
  if (SSL_set_fd(ssl, fd) != 1 || SSL_accept(ssl) != 1)
    return fail(ErrorCode::kTls, fmt::format("TLS handshake: {}", tls_reason()));
  return socket;
}

void prepare_socket(int fd, Nanos timeout) {
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  timeval tv{};
  tv.tv_sec = static_cast<time_t>(timeout.count() / 1'000'000'000);
  tv.tv_usec = static_cast<suseconds_t>(timeout.count() % 1'000'000'000 / 1000);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv);
}

}  // namespace thermo::net
