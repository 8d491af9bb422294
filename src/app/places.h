#pragma once
// Where things are: cache folder, admin socket, and the daemon behind a path.

#include <cstdint>
#include <string>
#include <string_view>

#include "app/settings.h"
#include "base/result.h"

namespace thermo::app {

/// --cache, else /var/cache/thermo for root and ~/.cache/thermo for others; absolute, symlinks resolved as far as it exists.
/// kInvalidArgument when there is no home folder.
[[nodiscard]] Result<std::string> cache_folder(const Settings& settings);

/// kAccessDenied when the folder is there and neither root's nor ours: its owner could put files, links and sockets there.
[[nodiscard]] Result<void> check_cache_owner(const std::string& cache_folder);

/// "<cache>/admin.sock"; where that is too long for a socket, a name made of its hash in /run/thermo (root),
/// $XDG_RUNTIME_DIR/thermo or /tmp/thermo-<uid>. Daemon and commands compute the same.
[[nodiscard]] std::string socket_path(const std::string& cache_folder);
/// Creates the fallback folder (0700, ours) when the socket is not inside the cache. kAccessDenied when somebody else owns it.
[[nodiscard]] Result<void> prepare_socket_folder(const std::string& cache_folder);

/// The value of user.thermo.admin on a mount's folders: socket and mount id.
struct AdminRef {
  std::string socket;
  std::uint64_t mount_id = 0;
  bool operator==(const AdminRef&) const = default;
};
[[nodiscard]] std::string to_text(const AdminRef& ref);
[[nodiscard]] Result<AdminRef> parse_admin_ref(std::string_view text);

struct Located {
  AdminRef admin;
  std::string root;      ///< mount point
  std::string relative;  ///< path below it, "" = the root itself
};
/// The mount that holds `path`. kNotFound when it is in none, kStale when the mount's daemon is dead.
[[nodiscard]] Result<Located> locate(const std::string& path);

}  // namespace thermo::app
