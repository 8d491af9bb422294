#pragma once
// Listings that are told in several pages, and in the end vouch for all of their prefix as of the time they began. Until then an
// answer that is older than that beginning may not change anything there: nobody would look at it again.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"

namespace thermo::catalog {

/// Thread-safe. Outlives its tokens.
class Vouching {
 public:
  /// Ends the listing's claim when destroyed.
  using Token = std::shared_ptr<const void>;

  /// A listing of `prefix` begins that will vouch as of `since`. Called before its first page is written down.
  [[nodiscard]] Token begin(const std::string& prefix, WallNanos since);
  /// True when an answer of `started` about names in `prefix` (`deep`: or anywhere below) is older than such a listing.
  [[nodiscard]] bool overtakes(std::string_view prefix, bool deep, WallNanos started) const;

 private:
  mutable Mutex mutex_{LockRank::kLeaf, "catalog vouching"};
  std::map<std::string, std::multiset<WallNanos>, std::less<>> open_ GUARDED_BY(mutex_);
};

}  // namespace thermo::catalog
