#pragma once
// Annotated mutex with a rank. In debug and sanitizer builds (THERMO_CHECK_LOCKS) a thread that takes a mutex whose rank is not
// greater than every rank it already holds aborts with both names: lock order is one list, below. No I/O under a lock.

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/clock.h"
#include "base/thread_annotations.h"

namespace thermo {

/// All ranks, outermost (taken first) to innermost. One lock per rank may be held by a thread at a time.
enum class LockRank : int {
  kDaemon = 10,         ///< app: the daemon's list of mounts
  kSession = 20,        ///< front/fuse: session tables
  kVfs = 30,            ///< vfs: node cache, open handles
  kReader = 40,         ///< read: one handle's prefetch window
  kCatalog = 50,        ///< catalog: listing state
  kCatalogFlight = 55,  ///< catalog: singleflight of listings
  kCacheTable = 60,     ///< cache: table of objects
  kCacheObject = 65,    ///< cache: one object's page states
  kCacheFill = 70,      ///< cache: one fill's progress
  kCacheSpace = 75,     ///< cache: byte accounting and replacement
  kCacheDevice = 78,    ///< cache: device state, checksum cache
  kStore = 80,          ///< store layers and file/memory stores
  kCredentials = 82,    ///< store: credential providers
  kHttp = 85,           ///< net: client loop queues
  kPool = 90,           ///< base: thread pool queues
  kBudget = 92,         ///< base: memory budget
  kTransfer = 94,       ///< net: one transfer's completion
  kNotify = 96,         ///< queues of notifications
  kLeaf = 100,          ///< locks that call nothing
};

class CAPABILITY("mutex") Mutex {
 public:
  /// `name` must live as long as the mutex (a literal).
  Mutex(LockRank rank, const char* name) : rank_(rank), name_(name) {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() ACQUIRE();
  void unlock() RELEASE();
  [[nodiscard]] bool try_lock() TRY_ACQUIRE(true);

 private:
  friend class CondVar;
  void check_order() const;
  void note_locked() const;
  void note_unlocked() const;

  std::mutex mutex_;
  [[maybe_unused]] LockRank rank_;
  [[maybe_unused]] const char* name_;
};

/// Scoped lock.
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  void notify_one() { cv_.notify_one(); }
  void notify_all() { cv_.notify_all(); }
  /// Spurious wake-ups happen: call in a loop that checks the condition.
  void wait(Mutex& mutex) REQUIRES(mutex);
  /// False when `until` has passed.
  [[nodiscard]] bool wait_until(Mutex& mutex, MonoTime until) REQUIRES(mutex);

 private:
  std::condition_variable cv_;
};

}  // namespace thermo
