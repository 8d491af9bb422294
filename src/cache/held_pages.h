#pragma once
// Complete pages that could not be cached stay in memory for a while, so that a reader who takes a page in small pieces does not
// fetch it again for each. Bounded; the one that waits longest goes first.

#include <cstdint>
#include <functional>
#include <list>

#include "base/clock.h"
#include "base/mutex.h"
#include "cache/fill.h"

namespace thermo::cache {

/// Thread-safe.
class HeldPages {
 public:
  struct Page {
    FillPtr fill;
    std::uint64_t page = 0;
    std::uint64_t bytes = 0;
    MonoTime since{};
  };

  explicit HeldPages(std::uint64_t limit_bytes) : limit_(limit_bytes) {}

  void add(Page page);
  /// True while more is held than the limit allows.
  [[nodiscard]] bool over_limit() const;
  /// Takes out the oldest; false when nothing is held.
  [[nodiscard]] bool take_oldest(Page& out);
  /// The same when it is older than `than`.
  [[nodiscard]] bool take_older(MonoTime than, Page& out);
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] std::size_t count() const;

 private:
  bool take(Page& out) REQUIRES(mutex_);

  const std::uint64_t limit_;
  mutable Mutex mutex_{LockRank::kCacheDevice, "held pages"};
  std::list<Page> pages_ GUARDED_BY(mutex_);  // oldest first
  std::uint64_t bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace thermo::cache
