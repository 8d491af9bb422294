#pragma once
// The two date forms of S3 answers.

#include <optional>
#include <string_view>

#include "base/clock.h"

namespace thermo::store {

/// "2026-11-30T22:02:38.123Z" (fraction optional), as in XML.
[[nodiscard]] std::optional<WallNanos> parse_iso_date(std::string_view text);
/// "Mon, 30 Nov 2026 22:02:38 GMT", as in headers.
[[nodiscard]] std::optional<WallNanos> parse_http_date(std::string_view text);

}  // namespace thermo::store
