#pragma once
// Pieces of the canonical form that signing and verifying share.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace thermo::net {

/// ASCII only, whatever the locale.
[[nodiscard]] std::string lower_ascii(std::string_view text);
/// Without leading and trailing blanks, inner runs of blanks as one space.
[[nodiscard]] std::string fold_spaces(std::string_view value);
/// Decoded names and values, encoded, sorted and joined: "a=1&uploads=".
[[nodiscard]] std::string canonical_query(const std::vector<std::pair<std::string, std::string>>& query);

}  // namespace thermo::net
