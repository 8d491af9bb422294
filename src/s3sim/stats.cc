#include "s3sim/stats.h"

namespace thermo::s3sim {

void Stats::begin() {
  const std::uint64_t now = in_flight_.fetch_add(1, std::memory_order_relaxed) + 1;
  std::uint64_t max = in_flight_max_.load(std::memory_order_relaxed);
  while (now > max && !in_flight_max_.compare_exchange_weak(max, now)) {
  }
}

void Stats::record(GetRecord record) {
  MutexLock lock(mutex_);
  records_.push_back(std::move(record));
  if (records_.size() > kMaxRecords) records_.pop_front();
}

void Stats::reset() {
  for (auto& counter : requests_) counter.store(0);
  for (auto& counter : faults_) counter.store(0);
  bytes_in_.store(0);
  bytes_out_.store(0);
  in_flight_max_.store(in_flight_.load());
  MutexLock lock(mutex_);
  records_.clear();
}

std::vector<GetRecord> Stats::records() {
  MutexLock lock(mutex_);
  return {records_.begin(), records_.end()};
}

}  // namespace thermo::s3sim
