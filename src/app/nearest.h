#pragma once
// "Did you mean": the word of a list that a mistyped one is closest to.

#include <span>
#include <string>
#include <string_view>

namespace thermo::app {

/// The candidate with the fewest edits (insert, delete, replace, swap of neighbours), empty when none is within a third of the
/// word's length.
[[nodiscard]] std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);
/// The same with at most `most` edits.
[[nodiscard]] std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates, std::size_t most);
/// "; did you mean 'x'?" or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace thermo::app
