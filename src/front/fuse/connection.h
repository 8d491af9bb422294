#pragma once
// Which mount a descriptor of /dev/fuse serves, so that a daemon takes down its own mount and never what lies over it by now.

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace thermo::fuse {

/// kInvalidArgument unless `fd` is a descriptor of /dev/fuse.
[[nodiscard]] Result<void> check_fuse_device(int fd);

/// The minor device number of the fuse.thermo mount at `path` when `fd` serves it: before Linux 6.14 or so the kernel does not
/// tell of which connection a descriptor is, and the mount's type has to do. Nothing when it serves another one, or none is seen
/// from this process's mount namespace.
[[nodiscard]] std::optional<std::uint32_t> mount_served_by(int fd, const std::string& path);

/// True while the topmost mount at `path` is the fuse.thermo mount of that device number.
[[nodiscard]] bool is_mounted_at(const std::string& path, std::uint32_t minor);

}  // namespace thermo::fuse
