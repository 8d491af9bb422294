#pragma once
// Stored checksums of whole objects, as x-amz-checksum-* headers tell them.

#include <openssl/evp.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_client.h"

namespace thermo::store {

struct StoredChecksum {
  std::string algorithm;  ///< "crc32", "crc32c", "crc64nvme", "sha1", "sha256"
  std::string base64;
};

/// The cheapest checksum of an answer that can be verified over its body: none for composite ones ("...-3") and unknown
/// algorithms.
[[nodiscard]] std::optional<StoredChecksum> stored_checksum(const net::HttpResponse& head);
/// One of those algorithms over a body that comes in pieces. Not thread-safe.
class RunningChecksum {
 public:
  explicit RunningChecksum(std::string_view algorithm);
  void update(std::string_view bytes);
  /// Of all bytes so far, in base64. Ends it.
  [[nodiscard]] std::string finish();

 private:
  enum class Kind : std::uint8_t { kCrc32c, kCrc32, kCrc64Nvme, kDigest };
  Kind kind_ = Kind::kDigest;
  std::uint64_t crc_ = 0;
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> digest_;
};

/// CRC-64/NVME of `bytes`, continuing from `previous` (0 to start): check("123456789") = 0xae8b14860a799888.
[[nodiscard]] std::uint64_t crc64nvme(std::string_view bytes, std::uint64_t previous = 0);
[[nodiscard]] std::string base64(std::string_view bytes);
/// Base64 of MD5, for Content-MD5.
[[nodiscard]] std::string md5_base64(std::string_view bytes);

}  // namespace thermo::store
