#pragma once
// A bounded pool of threads with a queue per priority. One per device and one for the store: a hung disk stalls nobody else.

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/context.h"
#include "base/mutex.h"

namespace thermo {

/// Thread-safe. Tasks must not throw. Destruction runs what is queued and joins.
class ThreadPool {
 public:
  struct Options {
    std::string name;               ///< thread name prefix, at most 10 characters
    std::size_t threads = 4;        ///< started on demand
    std::size_t max_queued = 4096;  ///< submit() answers kBusy beyond it
  };
  explicit ThreadPool(Options options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Queues a task; more urgent priorities run first, equal ones in order. kBusy when the queue is full, kCancelled after
  /// shutdown().
  [[nodiscard]] Result<void> submit(Priority priority, std::function<void()> task);
  /// Accepts no more, runs what is queued, joins. Idempotent; not to be called from a task.
  void shutdown();
  [[nodiscard]] std::size_t queued() const;

 private:
  void run();

  const Options options_;
  mutable Mutex mutex_{LockRank::kPool, "thread pool"};
  CondVar work_;
  std::deque<std::function<void()>> queues_[4] GUARDED_BY(mutex_);
  std::size_t queued_ GUARDED_BY(mutex_) = 0;
  std::size_t idle_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
};

}  // namespace thermo
