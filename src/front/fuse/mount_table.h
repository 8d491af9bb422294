#pragma once
// What is mounted where, as the kernel tells in /proc/self/mountinfo.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace thermo::fuse {

inline constexpr std::string_view kFsType = "fuse.thermo";
/// Least read-ahead of a mount. Measured sequentially, page cache dropped, 300 us a request: 0.5 GB/s at the kernel's own 128
/// KiB, 2.3 at 1 MiB, 3.5 at 4 MiB, 2.6 at 8 MiB; from daemon memory without a wait 128 KiB gives 2.9 and the others 3.6-4.4.
inline constexpr unsigned kReadAheadKb = 4096;

struct MountPoint {
  std::string path;     ///< as mounted; " (deleted)" and the like are not removed
  std::string source;   ///< "s3://bucket/prefix"
  std::string type;     ///< "fuse.thermo"
  std::string options;  ///< of this mount point: "ro,nosuid,nodev"
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
};

/// Decodes the table, in mount order; lines it does not understand are left out. Pure.
[[nodiscard]] std::vector<MountPoint> parse_mountinfo(std::string_view text);
/// All mounts of this process's namespace.
[[nodiscard]] std::vector<MountPoint> list_mounts();
[[nodiscard]] std::vector<MountPoint> list_thermo_mounts();
/// The topmost mount exactly at `path` (absolute, no symlinks, no trailing '/').
[[nodiscard]] std::optional<MountPoint> mount_at(std::string_view path);

/// Raises the read-ahead of the mount at `path` to `kb` (never lowers it). Asks nothing of the file system itself. kAccessDenied
/// for an ordinary user; kNotFound where nothing is mounted.
[[nodiscard]] Result<void> raise_read_ahead(std::string_view path, unsigned kb = kReadAheadKb);

}  // namespace thermo::fuse
