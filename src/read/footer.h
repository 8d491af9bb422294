#pragma once
// What the last bytes of a columnar file say about its footer.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace thermo::read {

inline constexpr std::uint64_t kParquetTrailerBytes = 8;

/// Length of the footer (without the trailer) from the last 8 bytes of a Parquet file: u32 little-endian, then "PAR1". nullopt
/// when these are not the last bytes of a Parquet file (an encrypted footer, "PARE", included).
[[nodiscard]] std::optional<std::uint32_t> parquet_footer_length(std::span<const std::byte> last_bytes);

/// True for names that end in ".parquet" or ".orc", in any case.
[[nodiscard]] bool has_footer(std::string_view name);

}  // namespace thermo::read
