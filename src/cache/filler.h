#pragma once
// Brings missing pages into memory and from there to the tier. One filler per page; memory is reserved before a GET starts and stays
// reserved until the page is on disk, so the budget bounds everything that is under way.

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

  Filler(const Options& options, Tier& tier);
  ~Filler();

  /// Who asks: the handle and its source.
  struct Requester {
    const EntryPtr& entry;
    const std::shared_ptr<Source>& source;
    std::uint64_t owner;
  };

  /// Fills `page` and the missing pages that follow it, up to `last`, in one GET; waits for memory. The caller counts as a waiter
  /// until it calls Fill::leave(). Null when the page is no longer missing. Errors: no memory in time, shutting down.
  [[nodiscard]] Result<FillPtr> start(const RequestContext& ctx, const Requester& who, std::uint64_t page, std::uint64_t last);
  /// Object::prefetch.
  [[nodiscard]] std::uint64_t prefetch(const RequestContext& ctx, const Requester& who, ByteRange range);
  /// Drops what is queued for a handle and has no waiters.
  void cancel(std::uint64_t owner);
  /// Somebody more urgent waits for it.
  void promote(const FillPtr& fill, Priority priority) { scheduler_.promote(fill, priority); }

  void expire_held();
  /// Cancels what is queued, finishes what runs (bounded), writes what is complete. Idempotent.
  void shutdown();

 private:
  class Sink;
  struct Run {
    std::uint64_t first;
    std::uint64_t count;
  };
  [[nodiscard]] Run missing_run(Entry& entry, std::uint64_t first, std::uint64_t last) const REQUIRES(entry.mutex);
  [[nodiscard]] bool missing(Entry& entry, std::uint64_t page) const REQUIRES(entry.mutex);
  [[nodiscard]] std::size_t reserve_now(const RequestContext& ctx, const Entry& entry, Run run, std::vector<MemoryReservation>& out) const;
  [[nodiscard]] Result<void> reserve_waiting(const RequestContext& ctx, const Entry& entry, Run run, std::vector<MemoryReservation>& out);
  [[nodiscard]] bool extend(Entry& entry, const Requester& who, Priority priority, Run run, std::vector<MemoryReservation>& memory)
      REQUIRES(entry.mutex);

  // filler_run.cc
  void run(const FillPtr& fill);
  void fail_fill(const FillPtr& fill, const Error& error);
  void page_complete(const FillPtr& fill, std::uint64_t page);
  void write_loop(const EntryPtr& entry);
  void write_one(const FillPtr& fill, std::uint64_t page);
  void hold(const FillPtr& fill, std::uint64_t page);
  /// Takes a page's buffer away from readers to come; false when somebody is about to take it.
  bool drop_page(const FillPtr& fill, std::uint64_t page, bool only_unwanted);
  bool drop_held();
  void pages_done(const FillPtr& fill, std::uint64_t count);

  Tier& tier_;
  MemoryBudget& memory_;
  const Clock& clock_;
  const std::uint64_t pages_per_fill_;
  HeldPages held_;
  ThreadPool device_pool_;
  FillScheduler scheduler_;
};

}  // namespace thermo::cache
