#pragma once
// The setuid helper fusermount3, by which ordinary users mount and unmount.

#include <string>
#include <string_view>

#include "base/result.h"
#include "front/fuse/fd.h"
#include "front/fuse/mount_options.h"

namespace thermo::fuse {

/// Mounts at `path` and returns the /dev/fuse descriptor that the helper sends back. kNotFound names the install command when the
/// helper is missing; the helper's own words are in the message of other errors.
[[nodiscard]] Result<UniqueFd> fusermount_mount(const std::string& path, const std::string& source, const MountOptions& options);
[[nodiscard]] Result<void> fusermount_unmount(const std::string& path, bool lazy);

/// The helper's -o argument. Pure.
[[nodiscard]] std::string fusermount_options(std::string_view source, const MountOptions& options);
/// Whether /etc/fuse.conf's text grants allow_other: a line of just `user_allow_other`. Pure.
[[nodiscard]] bool grants_allow_other(std::string_view fuse_conf);

}  // namespace thermo::fuse
