#pragma once
// Makes numbers of names, so that a stretch of keys can be cut into pieces of about equal size: positions are digits whose
// alphabets are the characters seen there (digits and hexadecimal letters stand for their whole class).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace thermo::catalog {

/// Immutable. Built from sample names in ascending order.
class KeyScale {
 public:
  explicit KeyScale(const std::vector<std::string>& samples);

  /// Order-preserving for names like the samples.
  [[nodiscard]] std::uint64_t value(std::string_view name) const;
  /// A name of about this value; empty when there is no scale. Never contains '/' or bytes above 0x7f that samples did not share.
  [[nodiscard]] std::string name(std::uint64_t value) const;
  [[nodiscard]] std::uint64_t limit() const { return limit_; }

 private:
  struct Position {
    std::string alphabet;  // ascending
    bool may_end = false;  // some sample ends here: digit 0 is the end
    std::uint64_t weight = 1;
    [[nodiscard]] std::uint64_t base() const { return alphabet.size() + (may_end ? 1 : 0); }
  };
  std::string common_;
  std::vector<Position> positions_;
  std::uint64_t limit_ = 1;
};

}  // namespace thermo::catalog
