#pragma once
// The INI dialect of the shared AWS files.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace thermo::store {

/// Section -> name (lower-case) -> value. A nested value ("s3 =" and below it, indented, "endpoint_url = u") is found as
/// "s3.endpoint_url".
using IniSections = std::map<std::string, std::map<std::string, std::string>>;

/// Never fails: lines that make no sense are passed over, as Amazon's own tools do. Section names come out with blanks folded and
/// quotes removed ("profile x").
[[nodiscard]] IniSections parse_ini(std::string_view text);

/// What a file looked like when it was read; another stamp means that it changed.
struct FileStamp {
  std::int64_t mtime_ns = -1;  ///< -1: there is none
  std::int64_t size = 0;
  std::uint64_t inode = 0;
  bool operator==(const FileStamp&) const = default;
};
[[nodiscard]] FileStamp stamp_of(const std::string& path);
/// The text of a file of at most 1 MiB; kNotFound when there is none.
[[nodiscard]] Result<std::string> read_small_file(const std::string& path);

}  // namespace thermo::store
