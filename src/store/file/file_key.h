#pragma once
// Keys as paths, and what identifies one version of a local file.

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace thermo::store::file {

inline constexpr std::size_t kMaxKey = 1024;                    ///< S3's limit, in bytes
inline constexpr std::string_view kTemporary = ".thermo-put.";  ///< names of half-written files begin so; they are not objects

/// kInvalidArgument for what cannot be a path below the root: empty, absolute, components "", "." and "..", NUL, our temporary
/// names. One trailing '/' is allowed: such a key names a folder. kNameTooLong beyond kMaxKey.
[[nodiscard]] Result<void> check_key(std::string_view key);

/// kNoSuchBucket when the root itself is gone: then a missing file says nothing about the key.
[[nodiscard]] Result<void> check_root(const std::string& root);

/// Inode, size, ctime and mtime (nanoseconds), quoted. The device number is left out: it changes from boot to boot.
[[nodiscard]] std::string etag_of(const struct stat& st);
/// A folder as an object ("dir/", size 0): its inode only, so that adding files does not change it.
[[nodiscard]] std::string folder_etag(const struct stat& st);

[[nodiscard]] std::int64_t nanos(const struct timespec& time);

/// ctime and mtime move in steps of a timer tick (10 ms at most): a change within the tick of `st` would not show. 0 when the
/// times are older than that, else how many nanoseconds are missing. A time in the future counts as old: waiting would not help.
[[nodiscard]] std::int64_t unsettled_for(const struct stat& st);

/// Closes on destruction.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd();
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool ok() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace thermo::store::file
