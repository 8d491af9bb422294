#pragma once
// Files and folders of the local machine behind a small interface, so that tests can put a failing or recording disk below the
// cache.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace thermo::io {

/// An open file. Thread-safe (positional I/O only). Closed on destruction.
class File {
 public:
  virtual ~File() = default;
  /// Reads up to dst.size() bytes at `offset`; fewer only at end of file.
  [[nodiscard]] virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> dst) = 0;
  /// Like read_at, but answers kWouldWaitDevice instead of waiting for the device (RWF_NOWAIT; a plain read on tmpfs). May return
  /// fewer bytes: those that were in memory.
  [[nodiscard]] virtual Result<std::size_t> read_at_nowait(std::uint64_t offset, std::span<std::byte> dst) = 0;
  /// Writes all of `src`.
  [[nodiscard]] virtual Result<void> write_at(std::uint64_t offset, std::span<const std::byte> src) = 0;
  [[nodiscard]] virtual Result<void> truncate(std::uint64_t size) = 0;
  [[nodiscard]] virtual Result<void> sync() = 0;
  [[nodiscard]] virtual Result<void> punch_hole(std::uint64_t offset, std::uint64_t length) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> size() = 0;
  /// Bytes on disk: st_blocks * 512.
  [[nodiscard]] virtual Result<std::uint64_t> allocated() = 0;
  /// The descriptor, for sendfile and passthrough; -1 where there is none.
  [[nodiscard]] virtual int fd() const = 0;
};

enum class OpenMode : std::uint8_t { kRead, kReadWrite, kCreate /* read-write, created when missing */ };

struct SpaceInfo {
  std::uint64_t total = 0;
  std::uint64_t available = 0;
};

/// One device's folder tree. Paths are relative to its root. Thread-safe.
class Disk {
 public:
  virtual ~Disk() = default;
  [[nodiscard]] virtual const std::string& root() const = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) = 0;
  [[nodiscard]] virtual Result<void> make_dirs(const std::string& path) = 0;
  [[nodiscard]] virtual Result<void> remove(const std::string& path) = 0;  ///< a missing file is success
  [[nodiscard]] virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  [[nodiscard]] virtual Result<std::vector<std::string>> list(const std::string& path) = 0;  ///< names, unordered
  [[nodiscard]] virtual Result<SpaceInfo> space() = 0;
};

/// The real thing. Creates `root` (mode 0750) when missing.
[[nodiscard]] Result<std::unique_ptr<Disk>> open_disk(const std::string& root);

}  // namespace thermo::io
