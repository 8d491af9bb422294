#pragma once
// 128-bit and 64-bit non-cryptographic hashes (XXH3). Values are stored on disk: the algorithm and seed are part of the format.

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace thermo {

struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Hash128&) const = default;
  /// 32 lower-case hexadecimal digits.
  [[nodiscard]] std::string hex() const;
  [[nodiscard]] static std::optional<Hash128> from_hex(std::string_view text);
};

[[nodiscard]] Hash128 hash128(std::string_view bytes);
[[nodiscard]] std::uint64_t hash64(std::string_view bytes);

}  // namespace thermo

template <>
struct std::hash<thermo::Hash128> {
  std::size_t operator()(const thermo::Hash128& h) const noexcept { return static_cast<std::size_t>(h.low); }
};
