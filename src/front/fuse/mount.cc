#include "front/fuse/mount.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/log.h"
#include "front/fuse/fusermount.h"

namespace thermo::fuse {
namespace {

bool is_root() { return ::geteuid() == 0; }

std::string quoted(std::string_view text) { return std::string("'").append(text).append("'"); }

/// statfs always asks the file system; stat may be answered by attributes that the kernel still believes, and so hide a dead
/// mount.
bool is_dead(const std::string& path) {
  struct statfs space{};
  int error = 0;
  // ECONNABORTED: the daemon died just now, under this question. Asked again, so that the answer does not depend on the moment.
  for (int asked = 0; asked < 3; ++asked) {
    error = ::statfs(path.c_str(), &space) == 0 ? 0 : errno;
    if (error != ECONNABORTED) break;
  }
  return error == ENOTCONN || error == ECONNABORTED;
}

Result<bool> is_empty_folder(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (!folder) return fail(errno_error(errno, "mount point " + quoted(path)));
  while (const dirent* entry = ::readdir(folder.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) return false;
  }
  return true;
}

Result<void> check_mount_point(const std::string& path, const MountOptions& options) {
  if (const auto there = mount_at(path); there && there->type.starts_with("fuse")) {
    return fail(ErrorCode::kBusy, "mount point " + quoted(path) + " is taken: " + quoted(there->source) + " (type " +
                                      there->type + ") is mounted there; run `thermo umount " + path +
                                      "` first, or choose another folder");
  }
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return fail(errno_error(errno, "mount point " + quoted(path)));
  if (!S_ISDIR(info.st_mode)) {
    return fail(ErrorCode::kNotDirectory, "mount point " + quoted(path) + " is not a folder; give an empty folder");
  }
  if (options.nonempty) return {};
  TRY_ASSIGN(const bool empty, is_empty_folder(path));
  if (!empty) {
    return fail(ErrorCode::kNotEmpty,
                "mount point " + quoted(path) + " is not empty; give an empty folder, or -o nonempty to cover what is in it");
  }
  return {};
}

Result<UniqueFd> open_device() {
  UniqueFd fd(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (fd.valid()) return fd;
  const int error = errno;
  if (error == ENOENT || error == ENODEV || error == ENXIO) {
    return fail(Error(ErrorCode::kNotFound, "/dev/fuse is missing: run modprobe fuse; in a container give it --device /dev/fuse")
                    .with_errno(error));
  }
  if (error == EACCES || error == EPERM) {
    return fail(Error(ErrorCode::kAccessDenied, "no permission to open /dev/fuse; in a container give it --device /dev/fuse")
                    .with_errno(error));
  }
  return fail(errno_error(error, "open /dev/fuse"));
}

Result<UniqueFd> mount_as_root(const std::string& path, const std::string& source, const MountOptions& options) {
  TRY_ASSIGN(auto device, open_device());
  const std::string data = "fd=" + std::to_string(device.get()) + ",rootmode=40000,user_id=" + std::to_string(::geteuid()) +
                           ",group_id=" + std::to_string(::getegid()) + ",allow_other,default_permissions,max_read=1048576";
  const std::string type(kFsType);
  if (::mount(source.c_str(), path.c_str(), type.c_str(), MS_NOSUID | MS_NODEV | options.flags, data.c_str()) == 0) return device;
  const int error = errno;
  const std::string what = "mount " + quoted(source) + " at " + quoted(path);
  if (error == EPERM || error == EACCES) {
    return fail(Error(ErrorCode::kAccessDenied,
                      what + ": not permitted although root; in a container give it --cap-add SYS_ADMIN --device /dev/fuse")
                    .with_errno(error));
  }
  if (error == ENODEV) {
    return fail(Error(ErrorCode::kNotFound, what + ": the kernel has no FUSE: run modprobe fuse").with_errno(error));
  }
  return fail(errno_error(error, what));
}

Result<void> detach_dead(const std::string& path) {
  if (!is_root()) return fusermount_unmount(path, true);
  ::umount2(path.c_str(), MNT_FORCE | UMOUNT_NOFOLLOW);  // aborts what still waits; often busy, then the detach below does it
  // The first call may have removed the mount already.
  if (::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != EINVAL) {
    return fail(errno_error(errno, "detach the dead mount at " + quoted(path)));
  }
  return {};
}

}  // namespace

Result<std::string> canonical_mount_path(const std::string& path) {
  char resolved[PATH_MAX];
  // First by the folder that the mount point is in: a mount that is dead, hung or another user's must not be looked at itself.
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  const auto slash = trimmed.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : slash == 0 ? "/" : trimmed.substr(0, slash);
  const std::string name = slash == std::string::npos ? trimmed : trimmed.substr(slash + 1);
  if (!name.empty() && name != "." && name != ".." && ::realpath(parent.c_str(), resolved) != nullptr) {
    std::string candidate = resolved;
    if (candidate != "/") candidate += '/';
    candidate += name;
    if (mount_at(candidate)) return candidate;
  }
  if (::realpath(path.c_str(), resolved) != nullptr) return std::string(resolved);
  const int error = errno;
  if (error == ENOENT) {
    return fail(Error(ErrorCode::kNotFound, "mount point " + quoted(path) + " does not exist; make it with mkdir -p " + path)
                    .with_errno(error));
  }
  if (error == ENOTDIR) {
    return fail(Error(ErrorCode::kNotDirectory, "mount point " + quoted(path) + " is not a folder; give an empty folder")
                    .with_errno(error));
  }
  return fail(errno_error(error, "mount point " + quoted(path)));
}

Result<bool> clear_dead_mount(const std::string& path) {
  bool cleared = false;
  // Several dead mounts may lie on top of each other.
  for (int layers = 0; layers < 16 && is_dead(path); ++layers) {
    TRY_ASSIGN(const auto canonical, canonical_mount_path(path));
    const auto there = mount_at(canonical);
    if (!there) continue;  // somebody else was quicker: look again
    if (there->type != kFsType) {
      return fail(ErrorCode::kBusy, quoted(path) + " holds a dead mount of another program (" + quoted(there->source) +
                                        ", type " + there->type + "); clear it with `umount -l " + path +
                                        "`, or choose another folder");
    }
    TRY(detach_dead(canonical));
    log::warn("{} was left by a daemon that died ({}): detached it", canonical, there->source);
    cleared = true;
  }
  return cleared;
}

Result<void> check_mount(const MountRequest& request) {
  TRY_ASSIGN(const auto path, canonical_mount_path(request.path));
  TRY(check_mount_point(path, request.options));
  if (::access("/dev/fuse", F_OK) != 0) {
    return fail(ErrorCode::kNotFound, "/dev/fuse is missing: run modprobe fuse; in a container give it --device /dev/fuse");
  }
  return {};
}

Result<Mounted> mount_fuse(const MountRequest& request) {
  Mounted mounted;
  TRY_ASSIGN(mounted.cleared_dead, clear_dead_mount(request.path));
  TRY_ASSIGN(mounted.path, canonical_mount_path(request.path));
  TRY(check_mount(request));
  mounted.privileged = is_root() && !request.as_ordinary_user;
  if (mounted.privileged) {
    TRY_ASSIGN(mounted.device, mount_as_root(mounted.path, request.source, request.options));
  } else {
    TRY_ASSIGN(mounted.device, fusermount_mount(mounted.path, request.source, request.options));
  }
  return mounted;
}

Result<void> unmount(const std::string& path, bool lazy) {
  TRY_ASSIGN(const auto canonical, canonical_mount_path(path));
  if (!mount_at(canonical)) return fail(ErrorCode::kNotFound, "nothing is mounted at " + quoted(path));
  const auto busy = [&] {
    return fail(Error(ErrorCode::kBusy,
                      quoted(path) + " is in use; `fuser -vm " + path +
                          "` names by whom: end those programs or leave the folder, or detach it now with `thermo umount -l`")
                    .with_errno(EBUSY));
  };
  if (is_root()) {
    if (::umount2(canonical.c_str(), UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0) return {};
    if (errno == EBUSY) return busy();
    return fail(errno_error(errno, "unmount " + quoted(path)));
  }
  auto done = fusermount_unmount(canonical, lazy);
  if (!done && done.error().code() == ErrorCode::kBusy) return busy();
  return done;
}

}  // namespace thermo::fuse
