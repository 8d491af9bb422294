#include "front/fuse/mount_table.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "front/fuse/fd.h"

namespace thermo::fuse {
namespace {

std::string read_whole(const char* path) {
  std::string text;
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return text;
  char chunk[16384];
  while (true) {
    const ssize_t n = ::read(fd.get(), chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(chunk, static_cast<std::size_t>(n));
  }
}

std::string_view next_field(std::string_view& line) {
  const auto space = line.find(' ');
  const auto field = line.substr(0, space);
  line = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
  return field;
}

bool octal(char c) { return c >= '0' && c <= '7'; }

/// The kernel writes space, tab, newline and backslash as \ooo.
std::string unescape(std::string_view field) {
  std::string out;
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '\\' && i + 3 < field.size() && octal(field[i + 1]) && octal(field[i + 2]) && octal(field[i + 3])) {
      out += static_cast<char>((field[i + 1] - '0') * 64 + (field[i + 2] - '0') * 8 + (field[i + 3] - '0'));
      i += 3;
    } else {
      out += field[i];
    }
  }
  return out;
}

bool number(std::string_view text, std::uint32_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<MountPoint> parse_line(std::string_view line) {
  MountPoint mount;
  next_field(line);  // mount id
  next_field(line);  // parent id
  const auto device = next_field(line);
  const auto colon = device.find(':');
  if (colon == std::string_view::npos || !number(device.substr(0, colon), mount.major) ||
      !number(device.substr(colon + 1), mount.minor)) {
    return std::nullopt;
  }
  next_field(line);  // root within the file system
  mount.path = unescape(next_field(line));
  mount.options = std::string(next_field(line));
  // Optional fields up to a lone "-".
  while (true) {
    if (line.empty()) return std::nullopt;
    if (next_field(line) == "-") break;
  }
  mount.type = unescape(next_field(line));
  mount.source = unescape(next_field(line));
  if (mount.path.empty() || mount.type.empty()) return std::nullopt;
  return mount;
}

}  // namespace

std::vector<MountPoint> parse_mountinfo(std::string_view text) {
  std::vector<MountPoint> mounts;
  while (!text.empty()) {
    const auto newline = text.find('\n');
    auto mount = parse_line(text.substr(0, newline));
    text = newline == std::string_view::npos ? std::string_view() : text.substr(newline + 1);
    if (mount) mounts.push_back(std::move(*mount));
  }
  return mounts;
}

std::vector<MountPoint> list_mounts() { return parse_mountinfo(read_whole("/proc/self/mountinfo")); }

std::vector<MountPoint> list_thermo_mounts() {
  auto mounts = list_mounts();
  std::erase_if(mounts, [](const MountPoint& mount) { return mount.type != kFsType; });
  return mounts;
}

std::optional<MountPoint> mount_at(std::string_view path) {
  std::optional<MountPoint> found;
  for (auto& mount : list_mounts()) {
    if (mount.path == path) found = std::move(mount);  // the last one covers the others
  }
  return found;
}

Result<void> raise_read_ahead(std::string_view path, unsigned kb) {
  const auto mount = mount_at(path);
  if (!mount) return fail(ErrorCode::kNotFound, "read-ahead: nothing is mounted at '" + std::string(path) + "'");
  const std::string file =
      "/sys/class/bdi/" + std::to_string(mount->major) + ":" + std::to_string(mount->minor) + "/read_ahead_kb";
  std::string now = read_whole(file.c_str());
  while (!now.empty() && now.back() == '\n') now.pop_back();
  std::uint32_t current = 0;
  if (number(now, current) && current >= kb) return {};
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return fail(errno_error(errno, "read-ahead: open " + file));
  const std::string text = std::to_string(kb);
  if (::write(fd.get(), text.data(), text.size()) < 0) return fail(errno_error(errno, "read-ahead: write " + file));
  return {};
}

}  // namespace thermo::fuse
