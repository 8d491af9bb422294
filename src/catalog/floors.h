#pragma once
// What was declared expired: a time per key or prefix; only what was asked of the store after it counts. Bounded: at the limit
// everything counts as expired, which costs LISTs and no correctness.

#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"

namespace thermo::catalog {

/// Thread-safe. Floors of prefixes end in '/' (or are empty: everything).
class Floors {
 public:
  static constexpr std::size_t kLimit = 65'536;

  void expire(std::string_view key_or_prefix, WallNanos at);
  /// The floor of this very key: the name itself was found wrong, not its folder.
  [[nodiscard]] WallNanos of_key(std::string_view key) const;
  /// The newest floor that holds for a name: of its key, of its prefix and of all folders above.
  [[nodiscard]] WallNanos for_name(std::string_view path) const;
  /// The newest floor that holds for the listing of `prefix`, floors of names directly in it included: a listing hands out their
  /// entries.
  [[nodiscard]] WallNanos for_listing(std::string_view prefix) const;
  /// The name was asked for at `at`: an older floor of its key has done its work.
  void satisfied(std::string_view key, WallNanos at);
  /// All names directly in `prefix` were.
  void satisfied_listing(std::string_view prefix, WallNanos at);
  [[nodiscard]] std::size_t size() const;

 private:
  [[nodiscard]] WallNanos above(std::string_view path) const REQUIRES(mutex_);
  [[nodiscard]] WallNanos at(std::string_view path) const REQUIRES(mutex_);

  mutable Mutex mutex_{LockRank::kCatalog, "catalog floors"};
  std::map<std::string, WallNanos, std::less<>> floors_ GUARDED_BY(mutex_);
};

}  // namespace thermo::catalog
