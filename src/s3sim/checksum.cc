#include "s3sim/checksum.h"

#include <openssl/evp.h>

#include <array>
#include <cstdint>

#include "base/crc32c.h"

namespace thermo::s3sim {
namespace {

std::string digest(const EVP_MD* algorithm, std::string_view bytes) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(out.data()), &size, algorithm, nullptr);
  out.resize(size);
  return out;
}

/// Reflected CRC with one 256-entry table: slow beside the instruction, and fast enough for what tests upload.
template <class Word>
Word table_crc(Word polynomial, std::string_view bytes) {
  std::array<Word, 256> table;
  for (std::size_t i = 0; i < table.size(); ++i) {
    Word value = static_cast<Word>(i);
    for (int bit = 0; bit < 8; ++bit) value = (value & 1) ? (value >> 1) ^ polynomial : value >> 1;
    table[i] = value;
  }
  Word crc = static_cast<Word>(~Word{0});
  for (const char c : bytes) crc = (crc >> 8) ^ table[static_cast<unsigned char>(crc) ^ static_cast<unsigned char>(c)];
  return static_cast<Word>(~crc);
}

template <class Word>
std::string big_endian(Word value) {
  std::string out(sizeof value, '\0');
  for (std::size_t i = 0; i < sizeof value; ++i) out[sizeof value - 1 - i] = static_cast<char>(value >> (8 * i));
  return out;
}

}  // namespace

std::string base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(size));
  return out;
}

std::string hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

std::string md5(std::string_view bytes) { return digest(EVP_md5(), bytes); }

std::optional<std::string> checksum(std::string_view name, std::string_view bytes) {
  if (name == "crc32") return big_endian(table_crc<std::uint32_t>(0xEDB88320U, bytes));
  if (name == "crc32c") return big_endian(crc32c(std::as_bytes(std::span(bytes.data(), bytes.size()))));
  if (name == "crc64nvme") return big_endian(table_crc<std::uint64_t>(0x9A6C9329AC4BC9B5ULL, bytes));
  if (name == "sha1") return digest(EVP_sha1(), bytes);
  if (name == "sha256") return digest(EVP_sha256(), bytes);
  return std::nullopt;
}

}  // namespace thermo::s3sim
