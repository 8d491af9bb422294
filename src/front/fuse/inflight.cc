#include "front/fuse/inflight.h"

#include <algorithm>

namespace thermo::fuse {

PendingPtr InFlight::add(std::uint64_t unique, std::uint32_t opcode, int device, MonoTime deadline) {
  auto pending = std::make_shared<Pending>();
  pending->unique = unique;
  pending->opcode = opcode;
  pending->device = device;
  pending->deadline = deadline;
  bool stop = false;
  {
    MutexLock lock(mutex_);
    stop = closed_;
    if (any_early_) {
      const auto found = std::find(early_.begin(), early_.end(), unique);
      if (found != early_.end()) {
        *found = 0;
        stop = true;
      }
    }
    waiting_.insert_or_assign(unique, pending);
  }
  if (stop) pending->stop.request_stop();
  return pending;
}

void InFlight::remove(std::uint64_t unique) {
  MutexLock lock(mutex_);
  waiting_.erase(unique);
  if (waiting_.empty()) empty_.notify_all();
}

void InFlight::interrupt(std::uint64_t unique) {
  PendingPtr found;
  {
    MutexLock lock(mutex_);
    const auto at = waiting_.find(unique);
    if (at == waiting_.end()) {
      early_[next_early_] = unique;
      next_early_ = (next_early_ + 1) % kEarly;
      any_early_ = true;
      return;
    }
    found = at->second;
  }
  found->stop.request_stop();
}

std::vector<PendingPtr> InFlight::take_expired(MonoTime now) {
  std::vector<PendingPtr> expired;
  {
    MutexLock lock(mutex_);
    for (const auto& [unique, pending] : waiting_) {
      if (pending->deadline <= now && pending->claim()) expired.push_back(pending);
    }
  }
  for (const auto& pending : expired) pending->stop.request_stop();
  return expired;
}

void InFlight::close() {
  std::vector<PendingPtr> all;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    for (const auto& [unique, pending] : waiting_) all.push_back(pending);
  }
  for (const auto& pending : all) pending->stop.request_stop();
}

bool InFlight::closed() const {
  MutexLock lock(mutex_);
  return closed_;
}

void InFlight::wait_empty() {
  MutexLock lock(mutex_);
  while (!waiting_.empty()) empty_.wait(mutex_);
}

std::size_t InFlight::size() const {
  MutexLock lock(mutex_);
  return waiting_.size();
}

}  // namespace thermo::fuse
