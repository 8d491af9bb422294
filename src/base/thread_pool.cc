#include "base/thread_pool.h"

#include <pthread.h>

#include <utility>

namespace thermo {

ThreadPool::ThreadPool(Options options) : options_(std::move(options)) {}

ThreadPool::~ThreadPool() { shutdown(); }

Result<void> ThreadPool::submit(Priority priority, std::function<void()> task) {
  MutexLock lock(mutex_);
  if (stopping_) return fail(ErrorCode::kCancelled, options_.name + ": shutting down");
  if (queued_ >= options_.max_queued) return fail(ErrorCode::kBusy, options_.name + ": queue is full");
  queues_[static_cast<int>(priority)].push_back(std::move(task));
  ++queued_;
  if (idle_ >= queued_) {
    work_.notify_one();
  } else if (threads_.size() < options_.threads) {
    threads_.emplace_back([this] { run(); });
    const std::string name = options_.name.substr(0, 10) + "-" + std::to_string(threads_.size());
    pthread_setname_np(threads_.back().native_handle(), name.substr(0, 15).c_str());
  } else {
    work_.notify_one();
  }
  return {};
}

void ThreadPool::run() {
  mutex_.lock();
  while (true) {
    std::function<void()> task;
    for (auto& queue : queues_) {
      if (queue.empty()) continue;
      task = std::move(queue.front());
      queue.pop_front();
      --queued_;
      break;
    }
    if (task) {
      mutex_.unlock();
      task();
      task = nullptr;
      mutex_.lock();
      continue;
    }
    if (stopping_) break;
    ++idle_;
    work_.wait(mutex_);
    --idle_;
  }
  mutex_.unlock();
}

void ThreadPool::shutdown() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    work_.notify_all();
  }
  for (auto& thread : threads) thread.join();
}

std::size_t ThreadPool::queued() const {
  MutexLock lock(mutex_);
  return queued_;
}

}  // namespace thermo
