#pragma once
// One writer per key at a time, without a lock held during its I/O.

#include <set>
#include <string>

#include "base/mutex.h"

namespace thermo::store::file {

/// Thread-safe; must outlive its guards.
class KeyLocks {
 public:
  class Guard {
   public:
    Guard(KeyLocks& locks, std::string key) : locks_(locks), key_(std::move(key)) { locks_.take(key_); }
    ~Guard() { locks_.release(key_); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    KeyLocks& locks_;
    const std::string key_;
  };

 private:
  void take(const std::string& key) {
    MutexLock lock(mutex_);
    while (!taken_.insert(key).second) freed_.wait(mutex_);
  }
  void release(const std::string& key) {
    MutexLock lock(mutex_);
    taken_.erase(key);
    freed_.notify_all();
  }

  Mutex mutex_{LockRank::kStore, "file store keys"};
  CondVar freed_;
  std::set<std::string> taken_ GUARDED_BY(mutex_);
};

}  // namespace thermo::store::file
