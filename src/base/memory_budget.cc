#include "base/memory_budget.h"

#include <algorithm>
#include <string>
#include <utility>

namespace thermo {

MemoryReservation::MemoryReservation(MemoryReservation&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

MemoryReservation& MemoryReservation::operator=(MemoryReservation&& other) noexcept {
  if (this != &other) {
    release();
    budget_ = std::exchange(other.budget_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void MemoryReservation::release() {
  if (budget_ != nullptr && bytes_ > 0) budget_->release(bytes_);
  budget_ = nullptr;
  bytes_ = 0;
}

MemoryReservation MemoryReservation::split(std::size_t bytes) {
  bytes_ -= bytes;
  return {budget_, bytes};
}

MemoryBudget::MemoryBudget(std::size_t limit_bytes, const Clock& clock) : limit_(limit_bytes), clock_(clock) {}

std::size_t MemoryBudget::limit_for(Priority priority) const {
  return priority == Priority::kForeground ? limit_ : limit_ - limit_ / 4;
}

Result<MemoryReservation> MemoryBudget::reserve(const RequestContext& ctx, std::size_t bytes) {
  const std::size_t limit = limit_for(ctx.priority);
  if (bytes > limit) {
    return fail(ErrorCode::kNoSpace, "a buffer of " + std::to_string(bytes) + " bytes exceeds the memory budget of " +
                                         std::to_string(limit) + " bytes; raise --memory");
  }
  MutexLock lock(mutex_);
  while (used_ + bytes > limit) {
    if (!ctx.may_wait) return fail(ErrorCode::kWouldWaitDevice);
    TRY(ctx.check(clock_));
    // Wakes at least every 50 ms of real time: neither the stop token nor a clock that a test moves signals this condition
    // variable.
    Nanos pause = std::chrono::milliseconds(50);
    if (ctx.deadline != MonoTime::max())
      pause = std::clamp<Nanos>(ctx.deadline - clock_.now(), std::chrono::microseconds(100), pause);
    (void)freed_.wait_until(mutex_, Clock::system().now() + pause);
  }
  used_ += bytes;
  return MemoryReservation(this, bytes);
}

void MemoryBudget::wait_for_release(Nanos real) {
  MutexLock lock(mutex_);
  (void)freed_.wait_until(mutex_, Clock::system().now() + real);
}

std::size_t MemoryBudget::available(Priority priority) const {
  MutexLock lock(mutex_);
  const std::size_t limit = limit_for(priority);
  return used_ >= limit ? 0 : limit - used_;
}

std::size_t MemoryBudget::used() const {
  MutexLock lock(mutex_);
  return used_;
}

void MemoryBudget::release(std::size_t bytes) {
  MutexLock lock(mutex_);
  used_ -= bytes;
  freed_.notify_all();
}

}  // namespace thermo
