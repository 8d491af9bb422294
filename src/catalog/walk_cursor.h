#pragma once
// A depth-first walk seen as one undelimited listing: how far it has come and how a folder that is asked for lies to it.

#include <string>
#include <string_view>

#include "catalog/key_layout.h"
#include "catalog/vouching.h"

namespace thermo::catalog {

enum class Relation : std::uint8_t {
  kOutside,   ///< not below the walk's root
  kBehind,    ///< all of it was on pages before the last
  kLastPage,  ///< all of it was on the last page
  kFrontier,  ///< the next page goes on inside it: the walk is in order
  kAhead,     ///< further on than the next key: a jump
};

/// Not thread-safe.
class WalkCursor {
 public:
  /// After the first page of `root`, which ended at `frontier`.
  WalkCursor(std::string root, std::string frontier, std::string token, WallNanos since, Vouching::Token vouching)
      : root_(std::move(root)),
        page_start_(root_),
        frontier_(std::move(frontier)),
        token_(std::move(token)),
        since_(since),
        vouching_(std::move(vouching)) {}

  [[nodiscard]] Relation relation(std::string_view prefix) const {
    if (!prefix.starts_with(root_)) return Relation::kOutside;
    if (frontier_.starts_with(prefix)) return Relation::kFrontier;
    if (prefix > frontier_) return Relation::kAhead;
    return prefix > page_start_ ? Relation::kLastPage : Relation::kBehind;
  }

  void on_page(std::string frontier, std::string token) {
    page_start_ = std::move(frontier_);
    frontier_ = std::move(frontier);
    token_ = std::move(token);
    jumps_ = 0;
  }

  /// A folder ahead was asked for. False when that has become a habit: then whole pages of subtrees are of no use.
  [[nodiscard]] bool jump() { return ++jumps_ <= kJumps; }

  [[nodiscard]] const std::string& root() const { return root_; }
  [[nodiscard]] const std::string& frontier() const { return frontier_; }
  [[nodiscard]] const std::string& token() const { return token_; }
  [[nodiscard]] WallNanos since() const { return since_; }

 private:
  static constexpr int kJumps = 2;
  std::string root_;
  std::string page_start_;
  std::string frontier_;
  std::string token_;
  WallNanos since_;
  Vouching::Token vouching_;
  int jumps_ = 0;
};

}  // namespace thermo::catalog
