#pragma once
// The requests that wait for a disk or the store: so that an interrupt, their deadline and the end of the session reach them.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace thermo::fuse {

/// One waiting request. Shared by its task and the table.
struct Pending {
  std::uint64_t unique = 0;
  std::uint32_t opcode = 0;
  int device = -1;  ///< the descriptor that it was read from
  MonoTime deadline;
  std::stop_source stop;
  /// True for exactly one caller: who gets it sends the answer.
  [[nodiscard]] bool claim() { return !answered_.exchange(true); }

 private:
  std::atomic<bool> answered_{false};
};
using PendingPtr = std::shared_ptr<Pending>;

/// Thread-safe. Stop callbacks run on the calling thread, outside the lock.
class InFlight {
 public:
  /// A request whose interrupt was read by another thread before it got here is stopped at once, and so is any after close().
  [[nodiscard]] PendingPtr add(std::uint64_t unique, std::uint32_t opcode, int device, MonoTime deadline);
  /// The last thing a task does.
  void remove(std::uint64_t unique);
  /// Fires the stop token of `unique`; remembered for a while when it is not (yet) here.
  void interrupt(std::uint64_t unique);
  /// Those past their deadline that nobody answered yet, claimed for the caller and stopped.
  [[nodiscard]] std::vector<PendingPtr> take_expired(MonoTime now);
  /// Stops all, also those that come later.
  void close();
  [[nodiscard]] bool closed() const;
  /// Until every task called remove().
  void wait_empty();
  [[nodiscard]] std::size_t size() const;

 private:
  /// Interrupts whose request is not here. Most are of requests that were answered meanwhile: old ones are overwritten.
  static constexpr std::size_t kEarly = 1024;

  mutable Mutex mutex_{LockRank::kSession, "fuse requests in flight"};
  CondVar empty_;
  std::unordered_map<std::uint64_t, PendingPtr> waiting_ GUARDED_BY(mutex_);
  std::array<std::uint64_t, kEarly> early_ GUARDED_BY(mutex_){};
  std::size_t next_early_ GUARDED_BY(mutex_) = 0;
  bool any_early_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace thermo::fuse
