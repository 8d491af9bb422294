#include "cache/fill_scheduler.h"

#include <pthread.h>

#include <algorithm>
#include <string>

namespace thermo::cache {
namespace {

constexpr std::size_t index_of(Priority priority) { return static_cast<std::size_t>(priority); }

}  // namespace

FillScheduler::FillScheduler(std::size_t threads, std::function<void(const FillPtr&)> run)
    : max_threads_(std::max<std::size_t>(threads, 1)),
      max_background_(std::max<std::size_t>(max_threads_ - max_threads_ / 4, 1)),
      run_(std::move(run)) {}

FillScheduler::~FillScheduler() {
  (void)stop();
  join(Nanos::zero());
}

Result<void> FillScheduler::submit(const FillPtr& fill, Priority priority) {
  MutexLock lock(mutex_);
  if (stopping_) return fail(ErrorCode::kCancelled, "the cache is shutting down");
  if (priority != Priority::kForeground && queued_ >= kMaxQueued) return fail(ErrorCode::kBusy, "the queue of fills is full");
  queues_[index_of(priority)].push_back(fill);
  ++queued_;
  if (waiting_ < queued_ && threads_.size() < max_threads_) {
    threads_.emplace_back([this] { run_thread(); });
    pthread_setname_np(threads_.back().native_handle(), ("fill-" + std::to_string(threads_.size())).c_str());
  } else {
    work_.notify_one();
  }
  return {};
}

void FillScheduler::promote(const FillPtr& fill, Priority priority) {
  MutexLock lock(mutex_);
  for (std::size_t i = index_of(priority) + 1; i < 4; ++i) {
    const auto it = std::find(queues_[i].begin(), queues_[i].end(), fill);
    if (it == queues_[i].end()) continue;
    auto& to = queues_[index_of(priority)];
    to.splice(to.end(), queues_[i], it);
    work_.notify_one();
    return;
  }
}

std::vector<FillPtr> FillScheduler::queued_of(std::uint64_t owner) const {
  std::vector<FillPtr> fills;
  MutexLock lock(mutex_);
  for (const auto& queue : queues_) {
    std::copy_if(queue.begin(), queue.end(), std::back_inserter(fills),
                 [&](const FillPtr& fill) { return fill->owner == owner; });
  }
  return fills;
}

bool FillScheduler::remove(const FillPtr& fill) {
  MutexLock lock(mutex_);
  for (auto& queue : queues_) {
    const auto it = std::find(queue.begin(), queue.end(), fill);
    if (it == queue.end()) continue;
    queue.erase(it);
    --queued_;
    return true;
  }
  return false;
}

bool FillScheduler::may_start(std::size_t queue) const {
  return queue == index_of(Priority::kForeground) || background_ < max_background_;
}

FillPtr FillScheduler::next() {
  for (std::size_t i = 0; i < 4; ++i) {
    if (queues_[i].empty() || !may_start(i)) continue;
    FillPtr fill = std::move(queues_[i].front());
    queues_[i].pop_front();
    --queued_;
    return fill;
  }
  return nullptr;
}

void FillScheduler::run_thread() {
  mutex_.lock();
  while (true) {
    const std::size_t foreground = queues_[index_of(Priority::kForeground)].size();
    FillPtr fill = next();
    if (fill) {
      const bool background = queues_[index_of(Priority::kForeground)].size() == foreground;
      if (background) ++background_;
      running_.insert(fill);
      mutex_.unlock();
      run_(fill);
      mutex_.lock();
      running_.erase(fill);
      if (background) --background_;
      if (running_.empty()) idle_.notify_all();
      // The last reference may own much: not freed under the lock.
      mutex_.unlock();
      fill.reset();
      mutex_.lock();
      continue;
    }
    if (stopping_) break;
    ++waiting_;
    work_.wait(mutex_);
    --waiting_;
  }
  mutex_.unlock();
}

std::vector<FillPtr> FillScheduler::stop() {
  std::vector<FillPtr> left;
  MutexLock lock(mutex_);
  stopping_ = true;
  for (auto& queue : queues_) {
    left.insert(left.end(), queue.begin(), queue.end());
    queue.clear();
  }
  queued_ = 0;
  work_.notify_all();
  return left;
}

void FillScheduler::join(Nanos grace) {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    const MonoTime until = Clock::system().now() + grace;
    while (!running_.empty()) {
      if (!idle_.wait_until(mutex_, until)) break;
    }
    for (const auto& fill : running_) fill->stop.request_stop();
    threads.swap(threads_);
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace thermo::cache
