#pragma once
// Private to s3sim: the digests that S3 clients send.

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace thermo::s3sim {

[[nodiscard]] std::string base64(std::string_view bytes);
[[nodiscard]] std::string hex(std::string_view bytes);
/// 16 raw bytes.
[[nodiscard]] std::string md5(std::string_view bytes);

/// The algorithms of x-amz-checksum-<name>, lower case.
inline constexpr std::string_view kChecksums[] = {"crc32", "crc32c", "crc64nvme", "sha1", "sha256"};

/// Raw checksum bytes, big-endian as S3 has them; nullopt for a name not in kChecksums.
[[nodiscard]] std::optional<std::string> checksum(std::string_view name, std::string_view bytes);

}  // namespace thermo::s3sim
