#pragma once
// Names inside a tier's folder and the arithmetic of pages and blocks. Part of the on-disk format.

#include <algorithm>
#include <cstdint>
#include <string>

#include "cache/cache.h"

namespace thermo::cache {

inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::uint64_t kBlocksPerPage = kPageBytes / kBlockBytes;
inline constexpr std::uint64_t kPagesPerFill = kMaxFillBytes / kPageBytes;

inline constexpr const char* kObjectsDir = "objects";
inline constexpr const char* kRecordsDir = "records";
inline constexpr const char* kFormatFile = "FORMAT";
inline constexpr const char* kCleanFile = "clean";
inline constexpr const char* kLockFile = "lock";
inline constexpr const char* kProbeFile = "probe";
inline constexpr const char* kSidecarSuffix = ".sum";

/// "objects/ab", where `bucket` < 256.
[[nodiscard]] std::string bucket_dir(unsigned bucket);
/// "objects/ab/abcd...": the object file of a version.
[[nodiscard]] std::string object_path(const VersionId& version);
/// The object's path + ".sum".
[[nodiscard]] std::string sidecar_path(const VersionId& version);

[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t n, std::uint64_t unit) { return (n + unit - 1) / unit * unit; }
[[nodiscard]] constexpr std::uint64_t page_count(std::uint64_t size) { return (size + kPageBytes - 1) / kPageBytes; }
[[nodiscard]] constexpr std::uint64_t block_count(std::uint64_t size) { return (size + kBlockBytes - 1) / kBlockBytes; }
/// Bytes of one page of an object: kPageBytes but for the last.
[[nodiscard]] constexpr std::uint64_t page_length(std::uint64_t size, std::uint64_t page) {
  return std::min(kPageBytes, size - page * kPageBytes);
}
[[nodiscard]] constexpr bool has_sidecar(std::uint64_t size) { return size > kSmallObjectBytes; }

/// What a file system may charge at most for one more page of an object (its data, the two sidecar blocks its checksums touch, an
/// extent block for each file), and for a new pair of files. Reserved before a fill, replaced by st_blocks after it.
[[nodiscard]] constexpr std::uint64_t page_cost(std::uint64_t size, std::uint64_t page) {
  return round_up(page_length(size, page), kBlockBytes) + (has_sidecar(size) ? 4 * kBlockBytes : kBlockBytes);
}
[[nodiscard]] constexpr std::uint64_t files_cost(std::uint64_t size) { return has_sidecar(size) ? 4 * kBlockBytes : 0; }

}  // namespace thermo::cache
