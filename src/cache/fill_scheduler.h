#pragma once
// Runs fills on its own bounded threads, most urgent first. A queued fill can become more urgent when somebody waits for it.

#include <cstddef>
#include <functional>
#include <list>
#include <set>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "cache/fill.h"

namespace thermo::cache {

/// Thread-safe.
class FillScheduler {
 public:
  static constexpr std::size_t kMaxQueued = 4096;

  /// `run` is called on a thread of the scheduler, once for every fill that was submitted and not removed.
  FillScheduler(std::size_t threads, std::function<void(const FillPtr&)> run);
  ~FillScheduler();
  FillScheduler(const FillScheduler&) = delete;
  FillScheduler& operator=(const FillScheduler&) = delete;

  /// kBusy when the queue is full (foreground fills get in always), kCancelled after stop().
  [[nodiscard]] Result<void> submit(const FillPtr& fill, Priority priority);
  void promote(const FillPtr& fill, Priority priority);
  /// What is queued on behalf of a handle.
  [[nodiscard]] std::vector<FillPtr> queued_of(std::uint64_t owner) const;
  /// False when it is not queued any more: its thread has it.
  [[nodiscard]] bool remove(const FillPtr& fill);

  /// Accepts no more and hands back what was queued.
  [[nodiscard]] std::vector<FillPtr> stop();
  /// Waits for what runs, at most `grace`; then fires its stop tokens and waits to the end. After stop().
  void join(Nanos grace);

 private:
  void run_thread();
  [[nodiscard]] FillPtr next() REQUIRES(mutex_);
  [[nodiscard]] bool may_start(std::size_t queue) const REQUIRES(mutex_);

  const std::size_t max_threads_;
  const std::size_t max_background_;  // the rest is kept for readers who wait
  const std::function<void(const FillPtr&)> run_;
  mutable Mutex mutex_{LockRank::kPool, "fill scheduler"};
  CondVar work_;
  CondVar idle_;
  std::list<FillPtr> queues_[4] GUARDED_BY(mutex_);
  std::size_t queued_ GUARDED_BY(mutex_) = 0;
  std::set<FillPtr> running_ GUARDED_BY(mutex_);
  std::size_t background_ GUARDED_BY(mutex_) = 0;
  std::size_t waiting_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
};

}  // namespace thermo::cache
