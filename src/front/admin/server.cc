#include "front/admin/server.h"

#include <fmt/core.h>
#include <grp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/log.h"
#include "base/mutex.h"
#include "front/admin/line_channel.h"
#include "front/admin/protocol.h"

namespace thermo::admin {
namespace {

using nlohmann::json;

/// How long the end waits for answers that are under way, in case a client does not read.
constexpr auto kLastWords = std::chrono::seconds(2);

Result<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
    return fail(errno_error(errno, "ask for the peer's identity"));
  Peer peer{credentials.uid, credentials.gid, credentials.pid, {}};
  std::array<gid_t, 256> groups{};
  length = sizeof groups;
  // Unknown to old kernels and too long a list both mean: judge by uid and primary group alone.
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &length) == 0) {
    peer.groups.assign(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(length / sizeof(gid_t)));
  }
  return peer;
}

class CallImpl final : public Call {
 public:
  CallImpl(LineChannel& channel, const Peer& peer, json request, std::vector<UniqueFd> descriptors, std::stop_token stop,
           std::shared_ptr<void>& state)
      : channel_(channel),
        peer_(peer),
        request_(std::move(request)),
        descriptors_(std::move(descriptors)),
        stop_(std::move(stop)),
        state_(state) {}

  const json& request() const override { return request_; }
  const Peer& peer() const override { return peer_; }
  std::vector<UniqueFd>& descriptors() override { return descriptors_; }
  Result<void> progress(const json& value) override { return channel_.send(progress_line(value)); }
  void answer(const json& value) override { answer_ = value; }
  bool hung_up() const override { return channel_.hung_up(); }
  std::stop_token stop_token() const override { return stop_; }
  std::shared_ptr<void>& connection_state() override { return state_; }
  const json& answered() const { return answer_; }

 private:
  LineChannel& channel_;
  const Peer& peer_;
  json request_;
  std::vector<UniqueFd> descriptors_;
  std::stop_token stop_;
  std::shared_ptr<void>& state_;
  json answer_;
};

class ServerImpl final : public Server {
 public:
  ServerImpl(ServerOptions options, Handler& handler, UniqueFd listener, UniqueFd wake)
      : options_(std::move(options)),
        handler_(handler),
        group_(find_group(options_.group)),
        listener_(std::move(listener)),
        wake_(std::move(wake)) {
    if (listener_.valid()) acceptor_ = std::thread([this] { accept_loop(); });
  }
  ~ServerImpl() override { stop(); }

  const std::string& path() const override { return options_.path; }

  void adopt(UniqueFd socket) override {
    {
      MutexLock lock(mutex_);
      reap();
      if (stopping_) return;
      if (connections_.size() < options_.max_connections) {
        connections_.emplace_back(std::move(socket));
        auto it = std::prev(connections_.end());
        it->thread = std::thread([this, it] {
          serve(it->channel);
          it->done.store(true, std::memory_order_release);
        });
        return;
      }
    }
    LineChannel channel(std::move(socket));
    const auto busy = fmt::format("the daemon already serves {} admin connections; try again", options_.max_connections);
    (void)channel.send(error_line(Error(ErrorCode::kBusy, busy)));  // fits into an empty socket buffer: never waits
  }

  void stop() override {
    std::list<Connection> rest;
    {
      MutexLock lock(mutex_);
      if (stopping_) return;
      stopping_ = true;
      rest.swap(connections_);
    }
    stop_source_.request_stop();
    const std::uint64_t one = 1;
    if (::write(wake_.get(), &one, sizeof one) < 0) log::error("cannot wake the admin listener");
    if (acceptor_.joinable()) acceptor_.join();
    listener_.reset();
    // Running handlers end by their stop token, and their answers go out: whoever asked must not take our end for a failure.
    for (auto& connection : rest) connection.channel.stop_receiving();
    const MonoTime until = Clock::system().now() + kLastWords;
    for (auto& connection : rest) {
      while (!connection.done.load(std::memory_order_acquire) && Clock::system().now() < until)
        std::this_thread::sleep_for(Millis(2));
      connection.channel.shutdown();
    }
    for (auto& connection : rest) connection.thread.join();
    if (!options_.path.empty()) ::unlink(options_.path.c_str());
  }

 private:
  struct Connection {
    explicit Connection(UniqueFd socket) : channel(std::move(socket)) {}
    LineChannel channel;
    std::thread thread;
    std::atomic<bool> done{false};
  };

  void reap() REQUIRES(mutex_) {
    for (auto it = connections_.begin(); it != connections_.end();) {
      if (it->done.load(std::memory_order_acquire)) {
        it->thread.join();
        it = connections_.erase(it);
      } else {
        ++it;
      }
    }
  }

  void accept_loop() {
    for (;;) {
      std::array<pollfd, 2> polled{pollfd{listener_.get(), POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0}};
      if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
      if (polled[1].revents != 0) return;
      if (polled[0].revents == 0) continue;
      UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket.valid()) {
        // Out of descriptors: wait instead of spinning on the same readable listener.
        if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(Millis(50));
        continue;
      }
      adopt(std::move(socket));
    }
  }

  void serve(LineChannel& channel) {
    auto peer = peer_of(channel.fd());
    if (!peer || !may_command(*peer, ::geteuid(), group_)) {
      const uid_t uid = peer ? peer->uid : 0;
      if (peer) log::warn("refused an admin connection of uid {}", uid);
      (void)channel.send(
          error_line(Error(ErrorCode::kAccessDenied,
                           fmt::format("uid {} may not command this daemon: only its own user, root and members of group {} may",
                                       uid, options_.group))));
      channel.shutdown();
      return;
    }
    std::shared_ptr<void> state;
    for (;;) {
      auto line = channel.receive();
      if (!line) {
        (void)channel.send(error_line(line.error()));
        break;
      }
      if (!*line) break;
      auto request = parse_request((*line)->text);
      std::string reply;
      if (!request) {
        reply = error_line(request.error());
      } else {
        CallImpl call(channel, *peer, std::move(*request), std::move((*line)->descriptors), stop_source_.get_token(), state);
        const auto result = handler_.handle(call);
        reply = result ? ok_line(call.answered()) : error_line(result.error());
      }
      if (!channel.send(reply)) break;
    }
    channel.shutdown();
  }

  const ServerOptions options_;
  Handler& handler_;
  const gid_t group_;
  UniqueFd listener_;
  UniqueFd wake_;
  std::stop_source stop_source_;
  std::thread acceptor_;
  Mutex mutex_{LockRank::kLeaf, "admin connections"};
  std::list<Connection> connections_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
};

/// A folder as the daemon makes it for root (root's, 0750) lets nobody else in: members of the group, who may command, may pass.
/// One that has another group or mode is as somebody wanted it.
void let_pass(const std::string& folder, gid_t group) {
  struct stat info{};
  if (::geteuid() != 0 || ::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return;
  if (info.st_uid != 0 || info.st_gid != 0 || (info.st_mode & 07777) != 0750) return;
  if (::lchown(folder.c_str(), static_cast<uid_t>(-1), group) != 0)
    log::warn("cannot open '{}' to the group {}: members of it cannot reach the admin socket", folder, group);
}

Result<UniqueFd> listen_on(const ServerOptions& options) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (options.path.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("the admin socket's path '{}' is longer than {} bytes", options.path, sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, options.path.data(), options.path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return fail(errno_error(errno, "open the admin socket"));
  // Set before bind, so that the name never exists with wider permissions.
  if (::fchmod(socket.get(), 0600) != 0) return fail(errno_error(errno, "restrict the admin socket"));
  ::unlink(options.path.c_str());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail(errno_error(errno, fmt::format("create the admin socket '{}'", options.path)));
  }
  const gid_t group = find_group(options.group);
  if (group != static_cast<gid_t>(-1) && ::lchown(options.path.c_str(), static_cast<uid_t>(-1), group) == 0) {
    if (::chmod(options.path.c_str(), 0660) != 0) return fail(errno_error(errno, "open the admin socket to its group"));
    let_pass(options.path.substr(0, options.path.rfind('/')), group);
  }
  if (::listen(socket.get(), 64) != 0) return fail(errno_error(errno, "listen on the admin socket"));
  return socket;
}

}  // namespace

bool may_command(const Peer& peer, uid_t own_uid, gid_t group) {
  if (peer.uid == own_uid || peer.uid == 0) return true;
  if (group == static_cast<gid_t>(-1)) return false;
  return peer.gid == group || std::find(peer.groups.begin(), peer.groups.end(), group) != peer.groups.end();
}

gid_t find_group(const std::string& name) {
  if (name.empty()) return static_cast<gid_t>(-1);
  std::array<char, 16384> buffer;
  group entry{};
  group* found = nullptr;
  if (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr)
    return static_cast<gid_t>(-1);
  return found->gr_gid;
}

Result<std::unique_ptr<Server>> start_server(const ServerOptions& options, Handler& handler) {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC));
  if (!wake.valid()) return fail(errno_error(errno, "create an event descriptor"));
  UniqueFd listener;
  if (!options.path.empty()) {
    TRY_ASSIGN(listener, listen_on(options));
  }
  return std::make_unique<ServerImpl>(options, handler, std::move(listener), std::move(wake));
}

}  // namespace thermo::admin
