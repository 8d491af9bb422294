#pragma once
// One GET: a run of missing pages of one object, its buffers, and how far it has come. Readers take slices of the buffers while they
// still grow.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/buffer.h"
#include "cache/entry.h"

namespace thermo::cache {

class Fill {
 public:
  enum class State : std::uint8_t { kReserving /* waits for memory */, kQueued, kRunning, kDone };

  Fill(EntryPtr entry_, std::shared_ptr<Source> source_, std::uint64_t owner_, std::uint64_t first, const RequestContext& ctx)
      : entry(std::move(entry_)),
        source(std::move(source_)),
        owner(owner_),
        first_page(first),
        request_id(ctx.request_id),
        principal(ctx.principal),
        priority(ctx.priority) {}

  const EntryPtr entry;
  const std::shared_ptr<Source> source;  ///< whose credentials are used
  const std::uint64_t owner;             ///< the handle that began it
  const std::uint64_t first_page;
  const std::uint64_t request_id;
  const Principal principal;
  std::stop_source stop;

  Mutex mutex{LockRank::kCacheFill, "fill"};
  CondVar progress;
  State state GUARDED_BY(mutex) = State::kReserving;
  Priority priority GUARDED_BY(mutex);
  std::vector<MemoryReservation> memory GUARDED_BY(mutex);  ///< one per page, until the transfer starts
  std::vector<BufferPtr> buffers GUARDED_BY(mutex);         ///< one per page; null when it went to disk or was dropped
  std::uint64_t received GUARDED_BY(mutex) = 0;             ///< bytes from the start of first_page
  std::optional<Error> error GUARDED_BY(mutex);
  std::uint32_t waiters GUARDED_BY(mutex) = 0;              ///< readers who still want bytes of it
  std::vector<bool> settled GUARDED_BY(mutex);              ///< pages that left the object's table; their buffers wait for waiters only
  std::uint64_t page_total GUARDED_BY(mutex) = 0;
  std::uint64_t pages_open GUARDED_BY(mutex) = 0;  ///< not yet on disk, held or given up
  bool poisoned GUARDED_BY(mutex) = false;         ///< its bytes proved wrong: none may stay

  /// A waiter is done. The last one lets go of what only waiters kept.
  void leave() REQUIRES(mutex) {
    if (--waiters > 0) return;
    for (std::size_t i = 0; i < settled.size() && i < buffers.size(); ++i) {
      if (settled[i]) buffers[i].reset();
    }
  }

  // Set before the transfer starts, constant from then on.
  bool admitted = false;  ///< space is reserved, the object is pinned
  std::uint64_t epoch = 0;
};

}  // namespace thermo::cache
