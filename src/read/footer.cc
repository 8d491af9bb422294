#include "read/footer.h"

#include <cstring>

namespace thermo::read {
namespace {

bool ends_with_no_case(std::string_view text, std::string_view lower_suffix) {
  if (text.size() < lower_suffix.size()) return false;
  text.remove_prefix(text.size() - lower_suffix.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] + ('a' - 'A')) : text[i];
    if (c != lower_suffix[i]) return false;
  }
  return true;
}

}  // namespace

std::optional<std::uint32_t> parquet_footer_length(std::span<const std::byte> last_bytes) {
  if (last_bytes.size() < kParquetTrailerBytes) return std::nullopt;
  const auto trailer = last_bytes.last(kParquetTrailerBytes);
  if (std::memcmp(trailer.data() + 4, "PAR1", 4) != 0) return std::nullopt;
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) length |= std::to_integer<std::uint32_t>(trailer[i]) << (8 * i);
  return length;
}

bool has_footer(std::string_view name) { return ends_with_no_case(name, ".parquet") || ends_with_no_case(name, ".orc"); }

}  // namespace thermo::read
