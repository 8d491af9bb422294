#pragma once
// Opening /dev/fuse and putting it at a folder: by mount(2) as root, through fusermount3 as an ordinary user. Errors name the
// mend. Blocking calls, safe to call from any thread.

#include <string>

#include "base/result.h"
#include "front/fuse/fd.h"
#include "front/fuse/mount_options.h"
#include "front/fuse/mount_table.h"

namespace thermo::fuse {

struct MountRequest {
  std::string path;    ///< the mount point, an existing empty folder
  std::string source;  ///< what `mount` and `df` show: "s3://bucket/prefix"
  MountOptions options;
  bool as_ordinary_user = false;  ///< go through fusermount3 though this process is root (an ordinary user always does)
};

/// A mounted, not yet served connection. Closing the descriptor leaves a dead mount point: hand it to a FuseSession, or
/// unmount().
struct Mounted {
  UniqueFd device;
  std::string path;           ///< absolute, without symlinks
  bool privileged = false;    ///< by mount(2): read-ahead can be raised, passthrough is possible
  bool cleared_dead = false;  ///< a mount that a dead daemon left there was detached first (a warning was logged)
};

/// What mount_fuse() would refuse before it touches anything: the mount point and the device. Cheap, for an early answer.
[[nodiscard]] Result<void> check_mount(const MountRequest& request);

/// kNotFound (no such folder, no /dev/fuse, no fusermount3), kNotDirectory, kNotEmpty, kBusy (something is mounted there),
/// kAccessDenied, kInvalidArgument (allow_other that /etc/fuse.conf does not grant).
[[nodiscard]] Result<Mounted> mount_fuse(const MountRequest& request);

/// `lazy` detaches at once, whoever uses it. kBusy names who to ask; kNotFound when nothing is mounted there. Answers only once
/// the path is free.
[[nodiscard]] Result<void> unmount(const std::string& path, bool lazy);

/// True when `path` was a mount of ours whose daemon is dead (statfs answers ENOTCONN); it is detached then and a warning says
/// so. kBusy when the dead mount is another program's, which may have its own way to mend it. False for anything else, also where
/// nothing is mounted.
[[nodiscard]] Result<bool> clear_dead_mount(const std::string& path);

/// The path as /proc/self/mountinfo writes it: absolute and without symlinks, also where the mount itself is dead. kNotFound.
[[nodiscard]] Result<std::string> canonical_mount_path(const std::string& path);

}  // namespace thermo::fuse
