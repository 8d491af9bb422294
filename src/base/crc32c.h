#pragma once
// CRC32C (Castagnoli), the checksum of every cached 4 KiB block and of x-amz-checksum-crc32c.

#include <cstddef>
#include <cstdint>
#include <span>

namespace thermo {

/// CRC32C of `bytes`, continuing from `previous` (0 to start): crc("ab") == crc("b", crc("a")). crc32c("123456789") = 0xe3069283.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous = 0);

/// CRC32C of the concatenation A+B from crc(A), crc(B) and the length of B.
[[nodiscard]] std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t length_b);

}  // namespace thermo
