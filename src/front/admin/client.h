#pragma once
// A command's end of the admin socket.

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
/// Over an already connected socket.
[[nodiscard]] std::unique_ptr<Client> make_client(UniqueFd socket);

}  // namespace thermo::admin
