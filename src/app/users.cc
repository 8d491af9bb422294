#include "app/users.h"

#include <fmt/core.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

namespace thermo::app {
namespace {

std::optional<std::uint32_t> number(std::string_view text, int base) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// (uid_t)-1 means "leave as it is" to the kernel: nobody can own a file with it.
bool id_ok(std::uint32_t id) { return id != 0xffffffffu; }

}  // namespace

Result<std::uint32_t> parse_uid(std::string_view text) {
  if (const auto id = number(text, 10); id && id_ok(*id)) return *id;
  std::array<char, 16384> buffer;
  passwd entry{};
  passwd* found = nullptr;
  const std::string name(text);
  if (::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) return found->pw_uid;
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("there is no user '{}' on this machine; give a name that `id` knows or a number", text));
}

Result<std::uint32_t> parse_gid(std::string_view text) {
  if (const auto id = number(text, 10); id && id_ok(*id)) return *id;
  std::array<char, 16384> buffer;
  group entry{};
  group* found = nullptr;
  const std::string name(text);
  if (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) return found->gr_gid;
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("there is no group '{}' on this machine; give a name that `getent group` knows or a number", text));
}

Result<std::uint32_t> parse_mode(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with("0o")) digits.remove_prefix(2);
  if (const auto mode = number(digits, 8); mode && *mode <= 0777) return *mode;
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("'{}' is not a set of permission bits; write octal digits such as 0644", text));
}

std::string home_folder() {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') return home;
  std::array<char, 16384> buffer;
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) return found->pw_dir;
  return {};
}

}  // namespace thermo::app
