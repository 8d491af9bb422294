#pragma once
// Users, groups and permission bits as people write them.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace thermo::app {

/// "9001" or "dbquery" -> id. kInvalidArgument names a user or group that does not exist.
[[nodiscard]] Result<std::uint32_t> parse_uid(std::string_view text);
[[nodiscard]] Result<std::uint32_t> parse_gid(std::string_view text);
/// "0644", "644" or "0o644", always octal, permission bits only.
[[nodiscard]] Result<std::uint32_t> parse_mode(std::string_view text);
/// HOME, else the home of the password file, else empty.
[[nodiscard]] std::string home_folder();

}  // namespace thermo::app
