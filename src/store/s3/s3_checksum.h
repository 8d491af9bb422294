#pragma once
// Stored checksums of whole objects, as x-amz-checksum-* headers tell them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_client.h"

namespace thermo::store {

struct StoredChecksum {
  std::string algorithm;  ///< "crc32", "crc32c", "crc64nvme", "sha1", "sha256"
  std::string base64;
};

/// The strongest checksum of an answer that can be verified over its body: none for composite ones ("...-3") and unknown
/// algorithms.
[[nodiscard]] std::optional<StoredChecksum> stored_checksum(const net::HttpResponse& head);
/// Base64 of that algorithm's checksum of `bytes`.
[[nodiscard]] std::string compute_checksum(std::string_view algorithm, std::string_view bytes);

/// CRC-64/NVME: check("123456789") = 0xae8b14860a799888.
[[nodiscard]] std::uint64_t crc64nvme(std::string_view bytes);
[[nodiscard]] std::string base64(std::string_view bytes);
/// Base64 of MD5, for Content-MD5.
[[nodiscard]] std::string md5_base64(std::string_view bytes);

}  // namespace thermo::store
