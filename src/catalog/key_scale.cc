#include "catalog/key_scale.h"

#include <algorithm>
#include <set>

namespace thermo::catalog {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool all_in(const std::set<char>& seen, std::string_view alphabet) {
  return std::all_of(seen.begin(), seen.end(), [&](char c) { return alphabet.find(c) != std::string_view::npos; });
}

/// Digits seen stand for all digits: the names that were not seen yet differ from those that were.
std::string alphabet_of(const std::set<char>& seen) {
  for (const std::string_view known : {"0123456789", "0123456789abcdef", "0123456789ABCDEF"}) {
    if (all_in(seen, known) && is_digit(*seen.begin())) return std::string(known);
  }
  return {seen.begin(), seen.end()};
}

}  // namespace

KeyScale::KeyScale(const std::vector<std::string>& samples) {
  if (samples.empty()) return;
  const std::string& first = samples.front();
  const std::string& last = samples.back();
  std::size_t origin = 0;
  while (origin < first.size() && origin < last.size() && first[origin] == last[origin]) ++origin;
  // Digits that all samples share may still count up: f000..., f001...
  while (origin > 0 && is_digit(first[origin - 1])) --origin;
  common_ = first.substr(0, origin);

  constexpr std::uint64_t kMost = std::uint64_t{1} << 56;
  for (std::size_t at = origin;; ++at) {
    std::set<char> seen;
    bool may_end = false;
    for (const auto& sample : samples) {
      if (at < sample.size()) seen.insert(sample[at]);
      else may_end |= at == sample.size();
    }
    // Half a character is no valid start-after: the scale ends where others than ASCII begin.
    if (seen.empty() || *seen.begin() < 0x20 || *seen.rbegin() > 0x7e) break;
    Position position{alphabet_of(seen), may_end, 1};
    if (limit_ > kMost / position.base()) break;
    limit_ *= position.base();
    positions_.push_back(std::move(position));
  }
  std::uint64_t weight = limit_;
  for (auto& position : positions_) position.weight = weight /= position.base();
}

std::uint64_t KeyScale::value(std::string_view name) const {
  const int order = name.substr(0, common_.size()).compare(common_);
  if (order < 0) return 0;
  if (order > 0) return limit_;
  name.remove_prefix(common_.size());
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < positions_.size(); ++i) {
    const Position& position = positions_[i];
    if (i >= name.size()) return value;
    const auto it = std::lower_bound(position.alphabet.begin(), position.alphabet.end(), name[i]);
    const auto index = static_cast<std::uint64_t>(it - position.alphabet.begin()) + (position.may_end ? 1 : 0);
    value += std::min(index, position.base()) * position.weight;
    // A character outside of the alphabet stands just before the next one inside.
    if (it == position.alphabet.end() || *it != name[i]) return value;
  }
  return value;
}

std::string KeyScale::name(std::uint64_t value) const {
  if (positions_.empty() || value >= limit_) return {};
  std::string out = common_;
  for (const Position& position : positions_) {
    std::uint64_t digit = value / position.weight;
    value %= position.weight;
    if (position.may_end) {
      if (digit == 0) break;
      --digit;
    }
    out.push_back(position.alphabet[digit]);
  }
  return out;
}

}  // namespace thermo::catalog
