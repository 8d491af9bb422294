#pragma once
// A command's end of the admin socket.

#include <sys/types.h>

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "front/admin/unique_fd.h"

namespace thermo::admin {

using ProgressSink = std::function<void(const nlohmann::json&)>;

/// One connection; one request at a time. Not thread-safe.
class Client {
 public:
  virtual ~Client() = default;
  /// Sends `request` (an object with "command") with `descriptors`, feeds progress lines to `progress` and waits for the end.
  /// `patience`: how long the daemon may stay silent between two lines. Errors are the daemon's, or of the connection: kTimeout,
  /// kCorrupt, and kCancelled when the daemon ended before it answered.
  [[nodiscard]] virtual Result<nlohmann::json> call(const nlohmann::json& request, std::span<const int> descriptors,
                                                    const ProgressSink& progress, Nanos patience) = 0;
  /// False when the daemon has closed its end.
  [[nodiscard]] virtual bool connected() const = 0;
  /// The connected socket, to poll for the daemon's end.
  [[nodiscard]] virtual int fd() const = 0;
};

/// kUnavailable when nobody listens on `path` (no such socket, or nobody behind it); kAccessDenied when the socket may not be
/// opened.
[[nodiscard]] Result<std::unique_ptr<Client>> connect_client(const std::string& path);
/// Whether the daemon behind the socket `path` may be told secrets: kAccessDenied unless it is root's, our own, or one that the
/// group `thermo` may command and whose user owns the folder. Anybody who may write in a folder can listen there.
[[nodiscard]] Result<void> check_daemon(const Client& client, const std::string& path);
/// What check_daemon decides by: users of the daemon, of this process and of the socket's folder; the socket's group and the id
/// of the group thermo (-1: there is none). Pure.
[[nodiscard]] bool may_serve(uid_t daemon, uid_t own, uid_t folder, gid_t socket_group, gid_t group);

/// Over an already connected socket.
[[nodiscard]] std::unique_ptr<Client> make_client(UniqueFd socket);

}  // namespace thermo::admin
