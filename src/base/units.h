#pragma once
// Sizes, rates and durations as people write them.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace thermo {

/// "200GiB", "64KiB", "4MB" (decimal), "1048576", "1.6TiB" -> bytes. Units: B, KB, MB, GB, TB (10^3), KiB, MiB, GiB, TiB (2^10),
/// also K, M, G, T = the binary ones. kInvalidArgument names the text and the units.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);
/// "90MB/s" -> bytes per second; the "/s" may be left out.
[[nodiscard]] Result<std::uint64_t> parse_rate(std::string_view text);
/// "60s", "25ms", "5m", "12h", "30d" -> nanoseconds. A bare number is an error that names the units.
[[nodiscard]] Result<Nanos> parse_duration(std::string_view text);

/// "1.5 GiB".
[[nodiscard]] std::string format_size(std::uint64_t bytes);
/// "1.25 s", "25.0 ms".
[[nodiscard]] std::string format_duration(Nanos duration);

}  // namespace thermo
