#include "app/places.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <filesystem>

#include "app/users.h"
#include "base/hash.h"
#include "front/fuse/mount_table.h"

namespace thermo::app {
namespace {

constexpr std::size_t kMaxSocketPath = sizeof(sockaddr_un::sun_path) - 1;

std::string fallback_folder() {
  if (::geteuid() == 0) return "/run/thermo";
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && *runtime == '/')
    return fmt::format("{}/thermo", runtime);
  return fmt::format("/tmp/thermo-{}", ::geteuid());
}

bool inside(std::string_view path, std::string_view root) {
  if (root == "/") return true;
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

/// The innermost mount of ours that holds `path`.
std::string mount_of(const std::string& path, std::string otherwise) {
  std::size_t longest = 0;
  for (const auto& mount : fuse::list_thermo_mounts()) {
    if (!inside(path, mount.path) || mount.path.size() < longest) continue;
    longest = mount.path.size();
    otherwise = mount.path;
  }
  return otherwise;
}

Error dead_mount(const std::string& root) {
  return Error(
      ErrorCode::kStale,
      fmt::format("the mount at '{}' is dead: its daemon is gone; `thermo umount {}` clears it, a new `thermo mount` replaces it",
                  root, root));
}

}  // namespace

Result<std::string> cache_folder(const Settings& settings) {
  std::string folder = settings.text("cache");
  if (folder.empty()) {
    if (::geteuid() == 0) {
      folder = "/var/cache/thermo";
    } else {
      const std::string home = home_folder();
      if (home.empty())
        return fail(ErrorCode::kInvalidArgument, "there is no home folder for the cache; give one with --cache DIR");
      folder = home + "/.cache/thermo";
    }
  }
  std::error_code failed;
  auto path = std::filesystem::weakly_canonical(std::filesystem::absolute(folder, failed), failed);
  if (failed) return fail(errno_error(failed.value(), fmt::format("cache folder '{}'", folder)));
  std::string text = path.string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

Result<void> check_cache_owner(const std::string& cache_folder) {
  struct stat info{};
  // One that is missing is made, and one that cannot be seen cannot be used: both are found out by whoever opens it.
  if (::lstat(cache_folder.c_str(), &info) != 0 || info.st_uid == 0 || info.st_uid == ::geteuid()) return {};
  return fail(
      ErrorCode::kAccessDenied,
      fmt::format("the cache folder '{}' belongs to another user (uid {}), who could change what is cached there; change its "
                  "owner (chown -R {} {}), or choose another with --cache",
                  cache_folder, info.st_uid, ::geteuid(), cache_folder));
}

std::string socket_path(const std::string& cache_folder) {
  std::string path = cache_folder + "/admin.sock";
  if (path.size() <= kMaxSocketPath) return path;
  return fmt::format("{}/{}.sock", fallback_folder(), hash128(cache_folder).hex().substr(0, 16));
}

Result<void> prepare_socket_folder(const std::string& cache_folder) {
  const std::string path = socket_path(cache_folder);
  const std::string folder = path.substr(0, path.rfind('/'));
  if (folder == cache_folder) return {};
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(errno_error(errno, fmt::format("create '{}' for the admin socket", folder)));
  struct stat info{};
  // In /tmp anybody could have made it first.
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid()) {
    return fail(ErrorCode::kAccessDenied,
                fmt::format("'{}' belongs to somebody else; give the cache a shorter path with --cache", folder));
  }
  return {};
}

std::string to_text(const AdminRef& ref) { return fmt::format("{}#{}", ref.socket, ref.mount_id); }

Result<AdminRef> parse_admin_ref(std::string_view text) {
  AdminRef ref;
  const auto hash = text.rfind('#');
  if (hash != std::string_view::npos) {
    const auto digits = text.substr(hash + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ref.mount_id);
    if (error == std::errc() && end == digits.data() + digits.size() && hash > 0 && text[0] == '/') {
      ref.socket = text.substr(0, hash);
      return ref;
    }
  }
  return fail(ErrorCode::kCorrupt, fmt::format("the mount names its daemon as '{}', which is not understood", text));
}

Result<Located> locate(const std::string& path) {
  std::array<char, PATH_MAX> buffer{};
  if (::realpath(path.c_str(), buffer.data()) == nullptr) {
    if (errno == ENOTCONN) return fail(dead_mount(mount_of(std::filesystem::absolute(path).lexically_normal().string(), path)));
    return fail(errno_error(errno, fmt::format("'{}'", path)));
  }
  const std::string real = buffer.data();
  Located located;
  located.root = mount_of(real, "");
  if (located.root.empty()) {
    return fail(ErrorCode::kNotFound,
                fmt::format("'{}' is not inside a Thermocline mount; `thermo status` lists the mounts", path));
  }
  if (real.size() > located.root.size()) located.relative = real.substr(located.root == "/" ? 1 : located.root.size() + 1);
  std::array<char, 512> value{};
  const ssize_t n = ::getxattr(located.root.c_str(), "user.thermo.admin", value.data(), value.size());
  if (n < 0) {
    if (errno == ENOTCONN) return fail(dead_mount(located.root));
    return fail(errno_error(errno, fmt::format("ask the mount at '{}' for its daemon", located.root)));
  }
  TRY_ASSIGN(located.admin, parse_admin_ref({value.data(), static_cast<std::size_t>(n)}));
  return located;
}

}  // namespace thermo::app
