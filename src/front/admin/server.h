#pragma once
// The daemon's end of the admin socket: one thread per connection, with a cap; the peer's identity comes from the kernel.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "front/admin/unique_fd.h"

namespace thermo::admin {

/// Who is at the other end (SO_PEERCRED, SO_PEERGROUPS).
struct Peer {
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t pid = 0;
  std::vector<gid_t> groups;  ///< supplementary
};

/// The daemon's own user, root, and members of `group` (-1: there is none) may command it.
[[nodiscard]] bool may_command(const Peer& peer, uid_t own_uid, gid_t group);
/// The id of a group by name; -1 when it does not exist.
[[nodiscard]] gid_t find_group(const std::string& name);

/// One request being answered; used by the connection's thread (progress() by one thread at a time).
class Call {
 public:
  virtual ~Call() = default;
  [[nodiscard]] virtual const nlohmann::json& request() const = 0;
  [[nodiscard]] virtual const Peer& peer() const = 0;
  /// Descriptors that came with the request; what the handler does not move out is closed.
  [[nodiscard]] virtual std::vector<UniqueFd>& descriptors() = 0;
  /// Sends a progress line; kUnavailable when the client is gone: stop working for it.
  [[nodiscard]] virtual Result<void> progress(const nlohmann::json& value) = 0;
  /// Sets the value of the ok line, which goes out when the handler returns success (null when never set).
  virtual void answer(const nlohmann::json& value) = 0;
  /// True when the client has closed its end.
  [[nodiscard]] virtual bool hung_up() const = 0;
  /// Fires when the server stops.
  [[nodiscard]] virtual std::stop_token stop_token() const = 0;
  /// A slot that lives as long as the connection, for handlers that keep something between two requests. Destroyed when it
  /// closes.
  [[nodiscard]] virtual std::shared_ptr<void>& connection_state() = 0;
};

/// Thread-safe: called from many connections at once. Must outlive the server.
class Handler {
 public:
  virtual ~Handler() = default;
  [[nodiscard]] virtual Result<void> handle(Call& call) = 0;
};

struct ServerOptions {
  std::string path;  ///< at most 107 bytes; an old socket there is replaced
  /// May connect too when it exists (0660), else the owner only (0600). A folder of the socket that is root's alone (root:root,
  /// 0750) becomes this group's.
  std::string group = "thermo";
  std::size_t max_connections = 64;  ///< beyond it: a "busy" error and close
};

/// Serves until destroyed.
class Server {
 public:
  virtual ~Server() = default;
  [[nodiscard]] virtual const std::string& path() const = 0;
  /// Takes one more, already connected socket (socketpair in tests, inherited sockets).
  virtual void adopt(UniqueFd socket) = 0;
  /// Accepts no more, wakes running handlers through their stop token, waits for them, removes the socket. Idempotent.
  virtual void stop() = 0;
};

/// kInvalidArgument for a path that is too long, else what bind said. `path` empty: no listener, only adopt().
[[nodiscard]] Result<std::unique_ptr<Server>> start_server(const ServerOptions& options, Handler& handler);

}  // namespace thermo::admin
