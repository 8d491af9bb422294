#pragma once
// One budget for all buffer memory: fills, prefetch windows, footers. Prefetch may not use the last quarter, so that a
// foreground read always finds room.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/context.h"
#include "base/mutex.h"

namespace thermo {

class MemoryBudget;

/// RAII share of a MemoryBudget; movable. The budget must outlive it.
class MemoryReservation {
 public:
  MemoryReservation() = default;
  MemoryReservation(MemoryReservation&& other) noexcept;
  MemoryReservation& operator=(MemoryReservation&& other) noexcept;
  ~MemoryReservation() { release(); }
  void release();
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// Splits `bytes` (<= this->bytes()) off into a reservation of its own.
  [[nodiscard]] MemoryReservation split(std::size_t bytes);

 private:
  friend class MemoryBudget;
  MemoryReservation(MemoryBudget* budget, std::size_t bytes) : budget_(budget), bytes_(bytes) {}
  MemoryBudget* budget_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t limit_bytes, const Clock& clock = Clock::system());

  /// Waits (ctx.may_wait) until `bytes` fit; kTimeout, kCancelled, kWouldWaitDevice (may_wait false), or kNoSpace when bytes >
  /// limit().
  [[nodiscard]] Result<MemoryReservation> reserve(const RequestContext& ctx, std::size_t bytes);
  /// Waits until somebody gives memory back, at most `real` of real time. Whoever takes other steps between tries uses it.
  void wait_for_release(Nanos real);
  /// Bytes that a request of this priority could get at once.
  [[nodiscard]] std::size_t available(Priority priority) const;
  [[nodiscard]] std::size_t limit() const { return limit_; }
  [[nodiscard]] std::size_t used() const;

 private:
  friend class MemoryReservation;
  void release(std::size_t bytes);
  [[nodiscard]] std::size_t limit_for(Priority priority) const;

  const std::size_t limit_;
  const Clock& clock_;
  mutable Mutex mutex_{LockRank::kBudget, "memory budget"};
  CondVar freed_;
  std::size_t used_ GUARDED_BY(mutex_) = 0;
};

}  // namespace thermo
