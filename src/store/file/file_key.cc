#include "store/file/file_key.h"

#include <fmt/core.h>
#include <unistd.h>

#include <ctime>

namespace thermo::store::file {

Result<void> check_key(std::string_view key) {
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("key '{}': {}", key, why));
  };
  if (key.empty()) return refuse("a key must not be empty");
  if (key.size() > kMaxKey)
    return fail(ErrorCode::kNameTooLong, fmt::format("key of {} bytes; the limit is {}", key.size(), kMaxKey));
  if (key.find('\0') != std::string_view::npos) return refuse("a path cannot hold a NUL byte");
  std::string_view rest = key;
  if (rest.ends_with('/')) rest.remove_suffix(1);
  while (true) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (part.empty()) return refuse("a key of a folder store has no leading '/' and no '//'");
    if (part == "." || part == "..") return refuse("'.' and '..' do not name a file of the folder");
    if (part.starts_with(kTemporary)) return refuse("names that begin with '.thermo-put.' are kept for unfinished writes");
    if (slash == std::string_view::npos) return {};
    rest.remove_prefix(slash + 1);
  }
}

Result<void> check_root(const std::string& root) {
  struct stat st{};
  if (::stat(root.empty() ? "/" : root.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return {};
  return fail(ErrorCode::kNoSuchBucket, fmt::format("the folder '{}' is gone; bring it back or unmount", root));
}

std::int64_t nanos(const struct timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

std::string etag_of(const struct stat& st) {
  return fmt::format("\"{:x}-{:x}-{:x}-{:x}\"", st.st_ino, st.st_size, nanos(st.st_ctim), nanos(st.st_mtim));
}

std::string folder_etag(const struct stat& st) { return fmt::format("\"folder-{:x}\"", st.st_ino); }

std::int64_t unsettled_for(const struct stat& st) {
  constexpr std::int64_t kTicks = 20'000'000;  // two ticks of the slowest usual kernel (100 Hz)
  struct timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);  // the kernel's own stamps are compared: an injected clock would be another one
  const std::int64_t age = nanos(now) - nanos(st.st_ctim);
  return age < 0 || age >= kTicks ? 0 : kTicks - age;
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace thermo::store::file
