#pragma once
// The catalog's own time: what says when a request to the store began, and so how old its answer is. It reads like wall time, but
// a wall clock that is set back never turns it back or makes it stand still: while the process lives it goes on at least as fast
// as monotonic time, and across restarts it goes on from where it was written down. Strictly increasing, so that "asked after it
// was expired" can be told even where the clock is coarse or stands still.

#include <algorithm>

#include "base/clock.h"
#include "base/mutex.h"

namespace thermo::catalog {

/// Thread-safe.
class Stamps {
 public:
  /// No stamp so far is later than `stamp`; the wall clock said `wall` then. Kept in the database.
  struct Mark {
    WallNanos stamp = 0;
    WallNanos wall = 0;
  };

  explicit Stamps(const Clock& clock) : clock_(clock) {}

  /// Goes on from the mark of an earlier process. False when the wall clock was set back meanwhile: nobody knows how long ago
  /// that was, so stamps from before say nothing about the age of what they mark.
  [[nodiscard]] bool resume(const Mark& mark) {
    MutexLock lock(mutex_);
    const WallNanos wall = clock_.wall();
    last_ = mark.stamp;
    lead_ = std::max<WallNanos>(0, mark.stamp - mark.wall);
    (void)advance();  // at once: the time since the mark counts even if the clock is set back before anybody asks
    return wall >= mark.wall;
  }

  /// Later than every stamp before.
  [[nodiscard]] WallNanos next() {
    MutexLock lock(mutex_);
    return last_ = std::max(advance(), last_ + 1);
  }

  /// What time it is; not before any stamp.
  [[nodiscard]] WallNanos now() {
    MutexLock lock(mutex_);
    return advance();
  }

  [[nodiscard]] Mark mark() {
    MutexLock lock(mutex_);
    return {advance(), clock_.wall()};
  }

 private:
  [[nodiscard]] WallNanos advance() REQUIRES(mutex_) {
    const auto mono = clock_.now().time_since_epoch().count();
    // Wall time runs on while the machine sleeps; monotonic time does when the wall clock is set back.
    const WallNanos time = std::max({clock_.wall() + lead_, mono + over_mono_, last_});
    over_mono_ = time - mono;
    return time;
  }

  const Clock& clock_;
  Mutex mutex_{LockRank::kLeaf, "catalog stamps"};
  WallNanos last_ GUARDED_BY(mutex_) = 0;
  WallNanos lead_ GUARDED_BY(mutex_) = 0;  // over wall time, where an earlier process was already ahead of it
  WallNanos over_mono_ GUARDED_BY(mutex_) = INT64_MIN / 2;
};

}  // namespace thermo::catalog
