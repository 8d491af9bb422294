#include "store/s3/s3_checksum.h"

#include <isa-l/crc.h>
#include <openssl/evp.h>

#include <array>
#include <cstring>
#include <span>

#include "base/crc32c.h"

namespace thermo::store {
namespace {

using Tables = std::array<std::array<std::uint64_t, 256>, 8>;

// Slicing by 8: eight bytes per step through eight tables (ISA-L has this polynomial only from 2.31 on).
constexpr Tables make_tables() {
  constexpr std::uint64_t kReflected = 0x9A6C9329AC4BC9B5ULL;
  Tables tables{};
  for (std::uint64_t i = 0; i < 256; ++i) {
    std::uint64_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? (crc >> 1U) ^ kReflected : crc >> 1U;
    tables[0][i] = crc;
  }
  for (std::size_t i = 0; i < 256; ++i) {
    for (std::size_t t = 1; t < 8; ++t) tables[t][i] = tables[0][tables[t - 1][i] & 0xFFU] ^ (tables[t - 1][i] >> 8U);
  }
  return tables;
}
constexpr Tables kTables = make_tables();

template <class Integer>
std::string big_endian(Integer value) {
  std::string out;
  for (std::size_t i = sizeof(Integer); i-- > 0;) out += static_cast<char>((value >> (8 * i)) & 0xFFU);
  return out;
}

std::string digest(const EVP_MD* algorithm, std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned int length = 0;
  EVP_Digest(bytes.data(), bytes.size(), out.data(), &length, algorithm, nullptr);
  return {reinterpret_cast<const char*>(out.data()), length};
}

}  // namespace

std::uint64_t crc64nvme(std::string_view bytes, std::uint64_t previous) {
  std::uint64_t crc = ~previous;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);  // little-endian machines only, like the rest of the on-disk format
    word ^= crc;
    crc = kTables[7][word & 0xFFU] ^ kTables[6][(word >> 8U) & 0xFFU] ^ kTables[5][(word >> 16U) & 0xFFU] ^
          kTables[4][(word >> 24U) & 0xFFU] ^ kTables[3][(word >> 32U) & 0xFFU] ^ kTables[2][(word >> 40U) & 0xFFU] ^
          kTables[1][(word >> 48U) & 0xFFU] ^ kTables[0][word >> 56U];
  }
  for (; left > 0; ++at, --left) crc = kTables[0][(crc ^ static_cast<unsigned char>(*at)) & 0xFFU] ^ (crc >> 8U);
  return ~crc;
}

std::string base64(std::string_view bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(length));
  return out;
}

std::string md5_base64(std::string_view bytes) { return base64(digest(EVP_md5(), bytes)); }

RunningChecksum::RunningChecksum(std::string_view algorithm) : digest_(nullptr, EVP_MD_CTX_free) {
  if (algorithm == "crc32c") kind_ = Kind::kCrc32c;
  else if (algorithm == "crc32") kind_ = Kind::kCrc32;
  else if (algorithm == "crc64nvme") kind_ = Kind::kCrc64Nvme;
  if (kind_ != Kind::kDigest) return;
  digest_.reset(EVP_MD_CTX_new());
  EVP_DigestInit_ex(digest_.get(), algorithm == "sha256" ? EVP_sha256() : EVP_sha1(), nullptr);
}

void RunningChecksum::update(std::string_view bytes) {
  const auto so_far = static_cast<std::uint32_t>(crc_);
  switch (kind_) {
    case Kind::kCrc32c: crc_ = crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())), so_far); return;
    case Kind::kCrc32: crc_ = crc32_gzip_refl(so_far, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()); return;
    case Kind::kCrc64Nvme: crc_ = crc64nvme(bytes, crc_); return;
    case Kind::kDigest: EVP_DigestUpdate(digest_.get(), bytes.data(), bytes.size()); return;
  }
}

std::string RunningChecksum::finish() {
  if (kind_ == Kind::kCrc64Nvme) return base64(big_endian(crc_));
  if (kind_ != Kind::kDigest) return base64(big_endian(static_cast<std::uint32_t>(crc_)));
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned int length = 0;
  EVP_DigestFinal_ex(digest_.get(), out.data(), &length);
  return base64({reinterpret_cast<const char*>(out.data()), length});
}

std::optional<StoredChecksum> stored_checksum(const net::HttpResponse& head) {
  const auto* type = head.header("x-amz-checksum-type");
  if (type != nullptr && *type == "COMPOSITE") return std::nullopt;
  // Cheapest first: any of them catches a damaged body.
  for (const char* algorithm : {"crc32c", "crc32", "crc64nvme", "sha256", "sha1"}) {
    const auto* value = head.header(std::string("x-amz-checksum-") + algorithm);
    if (value == nullptr || value->empty() || value->find('-') != std::string::npos) continue;
    return StoredChecksum{algorithm, *value};
  }
  return std::nullopt;
}

}  // namespace thermo::store
