#include "front/fuse/connection.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fstream>

#include "front/fuse/mount_table.h"

namespace thermo::fuse {
namespace {

// Documentation/admin-guide/devices.txt: 10 char, 229 = /dev/fuse.
constexpr unsigned kMiscMajor = 10;
constexpr unsigned kFuseMinor = 229;

std::optional<std::uint32_t> connection_of(int fd) {
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(fd));
  for (std::string line; std::getline(info, line);) {
    constexpr std::string_view kName = "fuse_connection:";
    if (line.starts_with(kName)) return static_cast<std::uint32_t>(std::strtoul(line.c_str() + kName.size(), nullptr, 10));
  }
  return std::nullopt;
}

}  // namespace

Result<void> check_fuse_device(int fd) {
  struct stat st{};
  if (::fstat(fd, &st) != 0) return fail(errno_error(errno, "look at the descriptor"));
  if (!S_ISCHR(st.st_mode) || major(st.st_rdev) != kMiscMajor || minor(st.st_rdev) != kFuseMinor)
    return fail(ErrorCode::kInvalidArgument, "the descriptor is not one of /dev/fuse");
  return {};
}

std::optional<std::uint32_t> mount_served_by(int fd, const std::string& path) {
  const auto mount = mount_at(path);
  if (!mount || mount->type != kFsType) return std::nullopt;
  const auto connection = connection_of(fd);
  if (connection && *connection != mount->minor) return std::nullopt;
  return mount->minor;
}

bool is_mounted_at(const std::string& path, std::uint32_t minor) {
  const auto mount = mount_at(path);
  return mount && mount->type == kFsType && mount->minor == minor;
}

}  // namespace thermo::fuse
