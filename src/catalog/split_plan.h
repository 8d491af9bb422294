#pragma once
// How a folder that proves big is listed in parallel: which stretches of its keys are asked for, given the pages that came. A
// plain state machine: pages in, requests out.
//
// The open end is explored in growing steps: behind the last name seen lie a few stretches of one page's width each and the rest.
// Only when the rest turns out to be full again the next, larger step follows, so that empty stretches stay a fraction of the
// full pages.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "catalog/key_scale.h"

namespace thermo::catalog {

/// Names in (after, until]; an empty `until` is the end of the prefix. With a token the store goes on where a page ended.
struct Stretch {
  std::uint64_t id = 0;
  std::string after;
  std::string until;
  std::string token;
};

/// Not thread-safe.
class SplitPlan {
 public:
  struct Options {
    std::size_t parallel = 16;
    std::size_t page = 1000;
  };
  SplitPlan(std::string prefix, Options options) : prefix_(std::move(prefix)), options_(options) {}

  /// The first request: the whole prefix.
  [[nodiscard]] Stretch start();

  /// For which names the page spoke, and what is to be asked next.
  struct Step {
    std::string after;
    std::string until;
    std::vector<Stretch> next;
  };
  /// `entries`: full keys and groups of the page in order, those past the stretch included.
  [[nodiscard]] Step on_page(std::uint64_t id, const std::vector<std::string_view>& entries, bool truncated,
                             const std::string& token);

  [[nodiscard]] bool done() const { return open_.empty(); }
  [[nodiscard]] std::size_t pages() const { return pages_; }  ///< that held names
  [[nodiscard]] std::size_t requests() const { return requests_; }

 private:
  [[nodiscard]] Stretch& open(std::string after, std::string until, std::string token);
  void sample(const std::vector<std::string_view>& entries);
  /// Where (last, until] is cut.
  [[nodiscard]] std::vector<std::string> cuts(const std::vector<std::string_view>& entries, const std::string& until) const;
  [[nodiscard]] std::string_view name_of(std::string_view entry) const;

  const std::string prefix_;
  const Options options_;
  std::unordered_map<std::uint64_t, Stretch> open_;
  std::vector<std::string> samples_;  // ascending
  std::uint64_t next_id_ = 1;
  std::size_t pages_ = 0;
  std::size_t requests_ = 0;
};

}  // namespace thermo::catalog
