#pragma once
// Times at which requests begin, as the catalog compares them: wall time (it survives a restart) made strictly increasing, so that "asked
// after it was expired" can be told even where the clock is coarse or stands still.

#include "base/clock.h"
#include "base/mutex.h"

namespace thermo::catalog {

/// Thread-safe.
class Stamps {
 public:
  explicit Stamps(const Clock& clock) : clock_(clock) {}

  /// Later than every stamp before. A clock that jumped back by more than a second is followed: what was stamped before then lies in
  /// the future and counts as expired.
  [[nodiscard]] WallNanos next() {
    MutexLock lock(mutex_);
    const WallNanos wall = clock_.wall();
    last_ = wall > last_ || last_ - wall > kTolerance ? wall : last_ + 1;
    return last_;
  }

  /// The latest stamp that counts at time `wall`; a later one comes from a clock that has gone backwards.
  [[nodiscard]] static WallNanos latest(WallNanos wall) { return wall + kTolerance; }
  [[nodiscard]] WallNanos wall() const { return clock_.wall(); }

 private:
  static constexpr WallNanos kTolerance = 1'000'000'000;
  const Clock& clock_;
  Mutex mutex_{LockRank::kLeaf, "catalog stamps"};
  WallNanos last_ GUARDED_BY(mutex_) = 0;
};

}  // namespace thermo::catalog
