#pragma once
// Keeps the number of open object files below what the process may have open.

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "cache/entry.h"

namespace thermo::cache {

/// Thread-safe.
class OpenFiles {
 public:
  /// `limit` entries may have files open; each has two at most.
  explicit OpenFiles(std::size_t limit) : limit_(limit) {}
  /// Half of the process's descriptors.
  [[nodiscard]] static std::size_t limit_of_process();
  /// `entry` has opened its files: those that opened first close theirs. No lock of an entry may be held.
  void opened(const EntryPtr& entry);
  /// Closes some because the process has run out of descriptors; false when there are none.
  bool close_some();

 private:
  static constexpr std::size_t kSome = 16;
  static void close(const EntryPtr& entry);
  const std::size_t limit_;
  Mutex mutex_{LockRank::kCacheDevice, "open files"};
  std::deque<std::weak_ptr<Entry>> order_ GUARDED_BY(mutex_);
};

}  // namespace thermo::cache
