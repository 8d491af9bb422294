#pragma once
// The sidecar of an object file: a checksummed header that says which object version this is, a bitmap of the pages that are
// present, and one CRC32C per 4 KiB block. Pure functions over bytes; whoever holds the file does the I/O.
//
//   0     header, 4096 bytes: magic, format version, page and block size, size, version id, store id, key, etag, CRC32C of the
//   rest 4096  bitmap, one bit per page, bit 0 of byte 0 first, padded to 64 bytes then  CRC32C of each block, 4 bytes,
//   little-endian

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "cache/cache.h"

namespace thermo::cache {

inline constexpr std::uint64_t kSidecarHeaderBytes = 4096;

/// Where the parts of a sidecar are, for an object of `size` bytes.
struct SidecarLayout {
  explicit SidecarLayout(std::uint64_t size);
  std::uint64_t bitmap_offset;
  std::uint64_t bitmap_bytes;
  std::uint64_t crc_offset;
  std::uint64_t total;
  [[nodiscard]] std::uint64_t crc_at(std::uint64_t block) const { return crc_offset + block * 4; }
};

/// False when the object's names are too long for a header: then it is not cached.
[[nodiscard]] bool fits_sidecar(const ObjectRef& ref);
/// Exactly kSidecarHeaderBytes; nullopt when it does not fit.
[[nodiscard]] std::optional<std::string> encode_sidecar_header(const ObjectRef& ref);

/// The object that a sidecar belongs to. kCorrupt names what is wrong. Total: any bytes give a value or an error.
[[nodiscard]] Result<ObjectRef> parse_sidecar_header(std::span<const std::byte> bytes);

}  // namespace thermo::cache
