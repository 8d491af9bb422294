#include "store/file/file_meta.h"

#include <sys/xattr.h>

#include <cerrno>
#include <string_view>

namespace thermo::store::file {
namespace {

constexpr std::string_view kType = "user.thermo.type";
constexpr std::string_view kMeta = "user.thermo.meta.";

Result<void> set(int fd, const std::string& path, const std::string& name, const std::string& value) {
  if (::fsetxattr(fd, name.c_str(), value.data(), value.size(), 0) == 0) return {};
  const int err = errno;
  if (err == ENOTSUP) {
    return fail(ErrorCode::kNotSupported,
                "'" + path + "': this file system keeps no extended attributes; write without content type and metadata");
  }
  return fail(errno_error(err, "set '" + name + "' of '" + path + "'"));
}

std::string get(const std::string& path, const char* name) {
  std::string value(4096, '\0');
  const ssize_t length = ::getxattr(path.c_str(), name, value.data(), value.size());
  value.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  return value;
}

}  // namespace

Result<void> write_meta(int fd, const std::string& path, const PutOptions& options) {
  if (!options.content_type.empty()) TRY(set(fd, path, std::string(kType), options.content_type));
  for (const auto& [name, value] : options.metadata) TRY(set(fd, path, std::string(kMeta) + name, value));
  return {};
}

void read_meta(const std::string& path, ObjectInfo& info) {
  std::string names(4096, '\0');
  const ssize_t length = ::listxattr(path.c_str(), names.data(), names.size());
  if (length <= 0) return;
  names.resize(static_cast<std::size_t>(length));
  for (std::size_t at = 0; at < names.size();) {
    const std::string_view name(names.c_str() + at);
    if (name == kType) info.content_type = get(path, name.data());
    if (name.starts_with(kMeta)) info.metadata[std::string(name.substr(kMeta.size()))] = get(path, name.data());
    at += name.size() + 1;
  }
}

}  // namespace thermo::store::file
