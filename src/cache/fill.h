#pragma once
// One GET: a run of missing pages of one object, its buffers, and how far it has come. Readers take slices of the buffers while
// they still grow.

#include <cstdint>
#include <limits>
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

  Fill(EntryPtr entry_, std::shared_ptr<Source> source_, std::uint64_t owner_, std::uint64_t first, const RequestContext& ctx);

  const std::uint64_t id;  ///< of this process, never used twice
  const EntryPtr entry;
  const std::shared_ptr<Source> source;  ///< whose credentials are used
  const std::uint64_t owner;             ///< the handle that began it
  const std::uint64_t first_page;
  const std::uint64_t request_id;
  const Principal principal;
  std::stop_source stop;

  struct Page {
    BufferPtr buffer;      ///< null before its first byte came, and when it went to disk or was dropped
    bool settled = false;  ///< it left the object's table; the buffer waits for waiters only
    bool held = false;     ///< complete, not to be cached, kept for a while
    bool read = false;     ///< somebody read it to its end
  };

  Mutex mutex{LockRank::kCacheFill, "fill"};
  CondVar progress;
  State state GUARDED_BY(mutex) = State::kReserving;
  Priority priority GUARDED_BY(mutex);
  std::uint64_t page_total GUARDED_BY(mutex) = 0;
  std::vector<MemoryReservation> memory GUARDED_BY(mutex);  ///< one per page, until the transfer starts
  std::vector<Page> pages GUARDED_BY(mutex);                ///< empty until the transfer starts
  std::uint64_t received GUARDED_BY(mutex) = 0;             ///< bytes from the start of first_page
  std::uint64_t wake_at GUARDED_BY(mutex) = kNobody;        ///< the least number of bytes that a waiter needs
  std::optional<Error> error GUARDED_BY(mutex);
  std::uint32_t waiters GUARDED_BY(mutex) = 0;     ///< readers who still want bytes of it
  std::uint64_t pages_open GUARDED_BY(mutex) = 0;  ///< not yet on disk, held or given up
  bool poisoned GUARDED_BY(mutex) = false;         ///< its bytes proved wrong: none may stay

  static constexpr std::uint64_t kNobody = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] bool covers(std::uint64_t page) const REQUIRES(mutex) {
    return page >= first_page && page - first_page < page_total;
  }
  /// Null while no transfer has started.
  [[nodiscard]] Page* find(std::uint64_t page) REQUIRES(mutex) {
    return page >= first_page && page - first_page < pages.size() ? &pages[page - first_page] : nullptr;
  }
  /// All bytes of the page have come.
  [[nodiscard]] bool complete(std::uint64_t page) const REQUIRES(mutex) {
    return received >= (page - first_page) * kPageBytes + page_length(entry->ref.size, page);
  }
  /// More bytes have come, or nothing will any more: wakes those whom it concerns.
  void advance(std::uint64_t bytes) REQUIRES(mutex);
  void wake_all() REQUIRES(mutex);
  /// A waiter is done. The last one lets go of what only waiters kept.
  void leave() REQUIRES(mutex);

  // Set by the thread that runs the transfer before its first byte, constant from then on.
  bool admitted = false;  ///< space is reserved, the object is pinned
  std::uint64_t epoch = 0;
  [[nodiscard]] Transfer transfer() const { return {id, epoch}; }
};

}  // namespace thermo::cache
