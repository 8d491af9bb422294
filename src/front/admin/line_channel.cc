#include "front/admin/line_channel.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace thermo::admin {
namespace {

constexpr auto kSendPatience = std::chrono::seconds(30);

/// Waits for `events`; false when the deadline passed.
Result<bool> wait_for(int fd, short events, MonoTime deadline) {
  for (;;) {
    int timeout = -1;
    if (deadline != MonoTime::max()) {
      const auto left = std::chrono::duration_cast<Millis>(deadline - Clock::system().now()).count();
      timeout = static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000'000));
    }
    pollfd p{fd, events, 0};
    const int n = ::poll(&p, 1, timeout);
    if (n > 0) return true;
    if (n == 0) return false;
    if (errno != EINTR) return fail(errno_error(errno, "wait for the admin socket"));
  }
}

}  // namespace

Result<void> LineChannel::send(std::string_view text, std::span<const int> descriptors) {
  std::string bytes(text);
  bytes += '\n';
  std::size_t sent = 0;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxLineDescriptors)> control{};
  while (sent < bytes.size()) {
    iovec part{bytes.data() + sent, bytes.size() - sent};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (sent == 0 && !descriptors.empty()) {
      if (descriptors.size() > kMaxLineDescriptors) return fail(ErrorCode::kInvalidArgument, "too many descriptors for one line");
      const std::size_t payload = descriptors.size() * sizeof(int);
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(payload);
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(payload);
      std::memcpy(CMSG_DATA(header), descriptors.data(), payload);
    }
    const ssize_t n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      sent += static_cast<std::size_t>(n);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      TRY_ASSIGN(const bool ready, wait_for(socket_.get(), POLLOUT, Clock::system().now() + kSendPatience));
      if (!ready) return fail(ErrorCode::kTimeout, "the other end of the admin socket does not read");
      continue;
    }
    return fail(Error(ErrorCode::kUnavailable, "the other end of the admin socket is gone").with_errno(errno));
  }
  return {};
}

Result<std::size_t> LineChannel::fill(MonoTime deadline) {
  std::array<char, 64 * 1024> chunk;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxLineDescriptors)> control;
  for (;;) {
    TRY_ASSIGN(const bool ready, wait_for(socket_.get(), POLLIN, deadline));
    if (!ready) return fail(ErrorCode::kTimeout, "no answer on the admin socket in time");
    iovec part{chunk.data(), chunk.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t n = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return fail(Error(ErrorCode::kUnavailable, "the admin connection broke").with_errno(errno));
    }
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        UniqueFd owned(fd);
        if (pending_.size() < kMaxLineDescriptors) pending_.push_back(std::move(owned));
      }
    }
    buffer_.append(chunk.data(), static_cast<std::size_t>(n));
    return static_cast<std::size_t>(n);
  }
}

Result<std::optional<Line>> LineChannel::receive(MonoTime deadline) {
  for (;;) {
    const std::size_t end = buffer_.find('\n', scanned_);
    // A complete line that is too long is refused as well: how the bytes were cut into packets must not decide.
    if (std::min(end, buffer_.size()) > kMaxLineBytes) {
      return fail(ErrorCode::kInvalidArgument, fmt::format("a line on the admin socket is longer than {} bytes", kMaxLineBytes));
    }
    if (end != std::string::npos) {
      Line line;
      line.text = buffer_.substr(0, end);
      line.descriptors = std::exchange(pending_, {});
      buffer_.erase(0, end + 1);
      scanned_ = 0;
      return std::optional<Line>(std::move(line));
    }
    scanned_ = buffer_.size();
    TRY_ASSIGN(const std::size_t n, fill(deadline));
    if (n == 0) {
      if (buffer_.empty()) return std::optional<Line>();
      return fail(ErrorCode::kInvalidArgument, "the last line on the admin socket is cut off");
    }
  }
}

bool LineChannel::hung_up() const {
  pollfd p{socket_.get(), POLLRDHUP, 0};
  return ::poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void LineChannel::stop_receiving() { ::shutdown(socket_.get(), SHUT_RD); }

void LineChannel::shutdown() { ::shutdown(socket_.get(), SHUT_RDWR); }

}  // namespace thermo::admin
