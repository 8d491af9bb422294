#include "cache/fill.h"

#include <atomic>

namespace thermo::cache {
namespace {

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Fill::Fill(EntryPtr entry_, std::shared_ptr<Source> source_, std::uint64_t owner_, std::uint64_t first, const RequestContext& ctx)
    : id(next_id()),
      entry(std::move(entry_)),
      source(std::move(source_)),
      owner(owner_),
      first_page(first),
      request_id(ctx.request_id),
      principal(ctx.principal),
      priority(ctx.priority) {}

void Fill::advance(std::uint64_t bytes) {
  received = bytes;
  // The network hands over some 16 KiB at a time; a reader of a megabyte must not be woken 64 times.
  if (received >= wake_at) wake_all();
}

void Fill::wake_all() {
  wake_at = kNobody;  // whoever is not content says so again
  progress.notify_all();
}

void Fill::leave() {
  if (--waiters > 0) return;
  for (auto& page : pages) {
    if (page.settled) page.buffer.reset();
  }
}

}  // namespace thermo::cache
