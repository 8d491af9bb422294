#include "cache/device_state.h"

namespace thermo::cache {

std::string_view to_string(DeviceCondition condition) {
  switch (condition) {
    case DeviceCondition::kOk: return "ok";
    case DeviceCondition::kDegraded: return "degraded";
    case DeviceCondition::kFailed: return "failed";
  }
  return "failed";
}

DeviceState::DeviceState(const Clock& clock) : clock_(clock), log_limit_(std::chrono::seconds(10), clock) {}

void DeviceState::worsen(DeviceCondition to, const Error& error) {
  if (condition() >= to) return;
  condition_.store(to, std::memory_order_relaxed);
  reason_ = error.describe();
  next_probe_ = clock_.now() + kProbeInterval;
  std::uint64_t suppressed = 0;
  if (log_limit_.allow(suppressed)) {
    log::warn("cache: device is {}: {}; reads go on from the store, next try in 5 s ({} earlier changes not shown)",
              to_string(to), reason_, suppressed);
  }
}

void DeviceState::write_failed(const Error& error) {
  MutexLock lock(mutex_);
  worsen(DeviceCondition::kDegraded, error);
}

void DeviceState::read_failed(const Error& error) {
  MutexLock lock(mutex_);
  const MonoTime now = clock_.now();
  while (!read_errors_.empty() && now - read_errors_.front() > kErrorWindow) read_errors_.pop_front();
  read_errors_.push_back(now);
  if (read_errors_.size() < kErrorsToFail) return;
  read_errors_.clear();
  worsen(DeviceCondition::kFailed, error);
}

std::string DeviceState::reason() const {
  MutexLock lock(mutex_);
  return reason_;
}

bool DeviceState::probe_due() {
  if (condition() == DeviceCondition::kOk) return false;
  MutexLock lock(mutex_);
  const MonoTime now = clock_.now();
  if (now < next_probe_) return false;
  next_probe_ = now + kProbeInterval;
  return true;
}

void DeviceState::probe_succeeded() {
  MutexLock lock(mutex_);
  if (condition() == DeviceCondition::kOk) return;
  condition_.store(DeviceCondition::kOk, std::memory_order_relaxed);
  reason_.clear();
  read_errors_.clear();
  std::uint64_t suppressed = 0;
  if (log_limit_.allow(suppressed)) log::info("cache: device is back");
}

void DeviceState::probe_failed(const Error& error) {
  MutexLock lock(mutex_);
  reason_ = error.describe();
}

}  // namespace thermo::cache
