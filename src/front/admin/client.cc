#include "front/admin/client.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "front/admin/line_channel.h"
#include "front/admin/protocol.h"
#include "front/admin/server.h"

namespace thermo::admin {
namespace {

using nlohmann::json;

class ClientImpl final : public Client {
 public:
  explicit ClientImpl(UniqueFd socket) : channel_(std::move(socket)) {}

  Result<json> call(const json& request, std::span<const int> descriptors, const ProgressSink& progress,
                    Nanos patience) override {
    // A daemon that refuses us says why before it hangs up: read on even where the request could not be sent.
    const auto sent = channel_.send(to_text(request), descriptors);
    if (!sent && sent.error().code() != ErrorCode::kUnavailable) return fail(sent.error());
    for (;;) {
      auto line = channel_.receive(Clock::system().now() + patience);
      if (!line && line.error().code() != ErrorCode::kUnavailable) return fail(std::move(line).error());
      // kUnavailable is an answer: the store's. The daemon's own end is told apart.
      if (!line || !*line) return fail(ErrorCode::kCancelled, "the daemon ended before it answered; its log says why");
      json value;
      TRY_ASSIGN(const AnswerKind kind, parse_answer((*line)->text, value));
      if (kind == AnswerKind::kOk) return value;
      if (progress) progress(value);
    }
  }
  bool connected() const override { return !channel_.hung_up(); }
  int fd() const override { return channel_.fd(); }

 private:
  LineChannel channel_;
};

}  // namespace

Result<std::unique_ptr<Client>> connect_client(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("the admin socket's path '{}' is longer than {} bytes", path, sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return fail(errno_error(errno, "open a socket"));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int err = errno;
    if (err == ENOENT || err == ECONNREFUSED || err == ENOTDIR) {
      return fail(Error(ErrorCode::kUnavailable, fmt::format("no daemon listens on '{}'", path)).with_errno(err));
    }
    if (err == EACCES) {
      return fail(
          Error(ErrorCode::kAccessDenied, fmt::format("the daemon at '{}' takes commands only from its own user, root and "
                                                      "members of the group thermo",
                                                      path))
              .with_errno(err));
    }
    return fail(errno_error(err, fmt::format("connect to the daemon at '{}'", path)));
  }
  return make_client(std::move(socket));
}

bool may_serve(uid_t daemon, uid_t own, uid_t folder, gid_t socket_group, gid_t group) {
  if (daemon == 0 || daemon == own) return true;
  // Only a member of the group can give it a socket, and only a member has a reason to go to somebody else's daemon.
  return own != 0 && daemon == folder && group != static_cast<gid_t>(-1) && socket_group == group;
}

Result<void> check_daemon(const Client& client, const std::string& path) {
  ucred daemon{};
  socklen_t length = sizeof daemon;
  if (::getsockopt(client.fd(), SOL_SOCKET, SO_PEERCRED, &daemon, &length) != 0)
    return fail(errno_error(errno, fmt::format("ask who listens on '{}'", path)));
  const std::string folder = path.substr(0, path.rfind('/'));
  struct stat place{};
  struct stat socket{};
  const bool seen = ::stat(folder.c_str(), &place) == 0 && ::lstat(path.c_str(), &socket) == 0;
  const gid_t group = seen ? find_group("thermo") : static_cast<gid_t>(-1);
  if (may_serve(daemon.uid, ::geteuid(), place.st_uid, socket.st_gid, group)) return {};
  return fail(ErrorCode::kAccessDenied,
              fmt::format("uid {} listens in the folder '{}' and would be told the keys of this mount; end that process (pid {}) "
                          "if it has no business there, or choose a cache folder of your own with --cache",
                          daemon.uid, folder, daemon.pid));
}

std::unique_ptr<Client> make_client(UniqueFd socket) { return std::make_unique<ClientImpl>(std::move(socket)); }

}  // namespace thermo::admin
