#pragma once
// Brings missing pages into memory and from there to the tier. One filler per page; memory is reserved before a GET starts and
// stays reserved until the page is on disk, so the budget bounds everything that is under way.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/memory_budget.h"
#include "base/thread_pool.h"
#include "cache/fill_scheduler.h"
#include "cache/held_pages.h"
#include "cache/tier.h"

namespace thermo::cache {

/// Thread-safe.
class Filler {
 public:
  /// A GET may take this long as a whole, whoever waits for it and for how long.
  static constexpr Nanos kFillTimeout = std::chrono::seconds(120);
  /// A page that could not be cached is kept at most this long.
  static constexpr Nanos kHoldTime = std::chrono::seconds(10);
  /// What runs at shutdown may go on this long: what it has brought in full is kept either way.
  static constexpr Nanos kShutdownGrace = std::chrono::milliseconds(500);

  Filler(const Options& options, Tier& tier);
  ~Filler();

  /// Who asks: the handle and its source.
  struct Requester {
    const EntryPtr& entry;
    const std::shared_ptr<Source>& source;
    std::uint64_t owner;
  };

  /// Fills `page` and missing pages that follow it, up to `last`, in one GET; waits for memory. The caller counts as a waiter
  /// until it calls Fill::leave(). Null when the page is no longer missing. Errors: no memory in time, shutting down.
  [[nodiscard]] Result<FillPtr> start(const RequestContext& ctx, const Requester& who, std::uint64_t page, std::uint64_t last);
  /// Object::prefetch.
  [[nodiscard]] std::uint64_t prefetch(const RequestContext& ctx, const Requester& who, ByteRange range);
  /// Object::wait_for_room.
  void wait_for_room(const RequestContext& ctx, std::uint64_t bytes);
  /// Drops what is queued for a handle and has no waiters.
  void cancel(std::uint64_t owner);
  /// Somebody more urgent waits for it.
  void promote(const FillPtr& fill, Priority priority) { scheduler_.promote(fill, priority); }
  /// Runs a task that may wait for the device; false when it will not be run.
  [[nodiscard]] bool on_device(std::function<void()> task) {
    return device_pool_.submit(Priority::kForeground, std::move(task)).has_value();
  }

  void expire_held();
  /// Settles the records of objects that are not being filled any more, so that a start after a kill finds few that are open.
  void settle_quiet();
  /// Cancels what is queued, finishes what runs (bounded), writes what is complete. Idempotent.
  void shutdown();

 private:
  class Sink;
  struct Run {
    std::uint64_t first;
    std::uint64_t count;
  };
  enum class Drop : std::uint8_t { kAlways, kUnwanted /* nobody waits for it */, kRead /* kUnwanted, and read to its end */ };

  [[nodiscard]] std::uint64_t run_end(const Entry& entry, std::uint64_t first, std::uint64_t last) const;
  [[nodiscard]] Run missing_run(Entry& entry, std::uint64_t first, std::uint64_t last) const REQUIRES(entry.mutex);
  [[nodiscard]] bool missing(Entry& entry, std::uint64_t page) const REQUIRES(entry.mutex);
  [[nodiscard]] std::size_t reserve_now(const RequestContext& ctx, const Entry& entry, Run run,
                                        std::vector<MemoryReservation>& out) const;
  [[nodiscard]] Result<MemoryReservation> reserve_waiting(const RequestContext& ctx, std::uint64_t bytes);
  /// Adds the missing pages that follow a fill which had to wait for the memory of its first, as far as there is memory now.
  void grow(const RequestContext& ctx, Entry& entry, const FillPtr& fill, std::uint64_t last) REQUIRES(entry.mutex, fill->mutex);
  [[nodiscard]] Result<void> submit(const FillPtr& fill, Priority priority);
  [[nodiscard]] bool extend(Entry& entry, const Requester& who, Priority priority, Run run,
                            std::vector<MemoryReservation>& memory) REQUIRES(entry.mutex);

  // filler_run.cc
  void run(const FillPtr& fill);
  void fail_fill(const FillPtr& fill, const Error& error);

  // filler_write.cc
  void page_complete(const FillPtr& fill, std::uint64_t page);
  /// After the last page_complete() of a transfer whose bytes may be kept.
  void transfer_ended(const FillPtr& fill);
  void enqueue(const EntryPtr& entry, Entry::WriteJob job);
  void write_loop(const EntryPtr& entry);
  void write_one(const FillPtr& fill, std::uint64_t page);
  void pages_done(const FillPtr& fill, std::uint64_t count);
  /// Gives up jobs that wait for the device: their pages are served from memory and then gone.
  void shed(const EntryPtr& entry);
  /// All of them, everywhere: the device holds memory that readers starve for.
  void shed_all();
  void hold(const FillPtr& fill, std::uint64_t page);
  /// Takes a page's buffer away from readers to come; false when the condition does not hold.
  bool drop_page(const FillPtr& fill, std::uint64_t page, Drop condition);
  /// Drops one held page that nobody waits for, and that was read unless `unread_too`; false when there is none.
  bool drop_held(bool unread_too);

  Tier& tier_;
  MemoryBudget& memory_;
  const Clock& clock_;
  const std::uint64_t pages_per_fill_;
  HeldPages held_;
  ThreadPool device_pool_;
  FillScheduler scheduler_;
};

}  // namespace thermo::cache
