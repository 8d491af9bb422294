// Which pages a GET takes and whether there is memory for them. What happens then is in filler_run.cc.

#include "cache/filler.h"

#include <algorithm>

namespace thermo::cache {
namespace {

// A GET takes at most a quarter of the memory: several must fit side by side.
std::uint64_t fill_pages(const MemoryBudget& memory) {
  return std::clamp<std::uint64_t>(memory.limit() / kPageBytes / 4, 1, kPagesPerFill);
}

// How often somebody who starves for memory looks whether there is some to take away, in real time.
constexpr Nanos kMemoryRound = Millis(20);
constexpr int kRoundsToShed = 25;
// Long enough for a slow disk to take 8 MiB, short enough not to be noticed beside the transfer itself. In rounds.
constexpr int kRoomRounds = 4;

}  // namespace

Filler::Filler(const Options& options, Tier& tier)
    : tier_(tier),
      memory_(*options.memory),
      clock_(*options.clock),
      pages_per_fill_(fill_pages(memory_)),
      held_(memory_.limit() - memory_.limit() / 4),  // all that prefetch may have
      device_pool_({.name = "cache-disk", .threads = std::max<std::size_t>(options.device_threads, 1), .max_queued = 4096}),
      scheduler_(options.fill_threads, [this](const FillPtr& fill) {
        tier_.metrics().fills_running.add(1);
        run(fill);
        tier_.metrics().fills_running.add(-1);
      }) {}

Filler::~Filler() { shutdown(); }

bool Filler::missing(Entry& entry, std::uint64_t page) const {
  return !entry.filling.contains(page) && !(entry.has(page) && tier_.device().may_read());
}

std::uint64_t Filler::run_end(const Entry& entry, std::uint64_t first, std::uint64_t last) const {
  // GETs of readers in order end on the same offsets, whoever begins them: so they meet instead of overlapping.
  return std::min({last + 1, (first / kPagesPerFill + 1) * kPagesPerFill, first + pages_per_fill_, entry.pages});
}

Filler::Run Filler::missing_run(Entry& entry, std::uint64_t first, std::uint64_t last) const {
  const std::uint64_t end = run_end(entry, first, last);
  Run run{first, 0};
  while (first + run.count < end && missing(entry, first + run.count)) ++run.count;
  return run;
}

std::size_t Filler::reserve_now(const RequestContext& ctx, const Entry& entry, Run run,
                                std::vector<MemoryReservation>& out) const {
  const RequestContext now = ctx.waiting(false);
  while (out.size() < run.count) {
    auto got = memory_.reserve(now, page_length(entry.ref.size, run.first + out.size()));
    if (!got) break;
    out.push_back(std::move(*got));
  }
  return out.size();
}

Result<MemoryReservation> Filler::reserve_waiting(const RequestContext& ctx, std::uint64_t bytes) {
  const RequestContext now = ctx.waiting(false);
  for (int round = 1;; ++round) {
    auto got = memory_.reserve(now, bytes);
    if (got || got.error().code() != ErrorCode::kWouldWaitDevice) return got;
    // Bytes that only might be read again make room for bytes that somebody waits for.
    if (drop_held(true)) continue;
    TRY(ctx.check(clock_));
    memory_.wait_for_release(kMemoryRound);
    // Full buffers that a slow or stuck device does not take are no reason to fail readers.
    if (round % kRoundsToShed == 0) shed_all();
  }
}

Result<FillPtr> Filler::start(const RequestContext& ctx, const Requester& who, std::uint64_t page, std::uint64_t last) {
  Entry& entry = *who.entry;
  FillPtr fill;
  bool reserved = false;
  {
    MutexLock lock(entry.mutex);
    if (!missing(entry, page)) return FillPtr();
    Run run = missing_run(entry, page, last);
    fill = std::make_shared<Fill>(who.entry, who.source, who.owner, page, ctx);
    std::vector<MemoryReservation> memory;
    // Fewer pages are enough to go on: a GET of those that fit beats waiting for the rest. And only one page is ever waited for:
    // readers who each wait with some pages in hand would wait for each other.
    run.count = std::max<std::size_t>(reserve_now(ctx, entry, run, memory), 1);
    reserved = !memory.empty();
    for (std::uint64_t i = 0; i < run.count; ++i) entry.filling[page + i] = fill;
    MutexLock fill_lock(fill->mutex);
    fill->page_total = fill->pages_open = run.count;
    fill->waiters = 1;  // the caller, until it calls leave()
    if (reserved) {
      fill->memory = std::move(memory);
      fill->state = Fill::State::kQueued;
    }
  }
  if (!reserved) {
    auto memory = reserve_waiting(ctx, page_length(entry.ref.size, page));
    if (!memory) {
      fail_fill(fill, memory.error());
      return fail(std::move(memory).error());
    }
    MutexLock lock(entry.mutex);
    MutexLock fill_lock(fill->mutex);
    fill->memory.push_back(std::move(*memory));
    grow(ctx, entry, fill, last);
    fill->state = Fill::State::kQueued;
  }
  TRY(submit(fill, ctx.priority));
  return fill;
}

Result<void> Filler::submit(const FillPtr& fill, Priority priority) {
  auto submitted = scheduler_.submit(fill, priority);
  if (!submitted) {
    fail_fill(fill, submitted.error());
    return submitted;
  }
  MutexLock lock(fill->mutex);
  // A reader may have come between the look into the object's table and the queue: its promotion found nothing to move.
  if (fill->priority < priority) scheduler_.promote(fill, fill->priority);
  return {};
}

void Filler::grow(const RequestContext& ctx, Entry& entry, const FillPtr& fill, std::uint64_t last) {
  const RequestContext now = ctx.waiting(false);
  const std::uint64_t end = run_end(entry, fill->first_page, last);
  for (std::uint64_t page = fill->first_page + 1; page < end && missing(entry, page); ++page) {
    auto got = memory_.reserve(now, page_length(entry.ref.size, page));
    if (!got) return;
    fill->memory.push_back(std::move(*got));
    entry.filling[page] = fill;
    fill->page_total = ++fill->pages_open;
  }
}

bool Filler::extend(Entry& entry, const Requester& who, Priority priority, Run run, std::vector<MemoryReservation>& memory) {
  if (run.first == 0 || run.first % kPagesPerFill == 0) return false;
  const auto before = entry.filling.find(run.first - 1);
  if (before == entry.filling.end()) return false;
  const FillPtr fill = before->second;
  if (fill->source != who.source) return false;
  MutexLock lock(fill->mutex);
  const bool fits = fill->state == Fill::State::kQueued && fill->priority == priority &&
                    fill->first_page + fill->page_total == run.first && fill->page_total + memory.size() <= pages_per_fill_;
  if (!fits) return false;
  fill->page_total += memory.size();
  fill->pages_open += memory.size();
  for (std::size_t i = 0; i < memory.size(); ++i) entry.filling[run.first + i] = fill;
  std::move(memory.begin(), memory.end(), std::back_inserter(fill->memory));
  return true;
}

std::uint64_t Filler::prefetch(const RequestContext& ctx, const Requester& who, ByteRange range) {
  Entry& entry = *who.entry;
  const std::uint64_t size = entry.ref.size;
  if (range.length == 0 || range.offset >= size) return 0;
  const std::uint64_t end = std::min(range.end(), size);
  const std::uint64_t first = range.offset / kPageBytes;
  const std::uint64_t last = (end - 1) / kPageBytes;
  // Not for what was fetched ahead and still waits for its reader: that would fetch everything twice.
  while (memory_.available(ctx.priority) < end - range.offset && drop_held(false)) {
  }

  std::vector<FillPtr> begun;
  std::uint64_t stopped_at = last + 1;
  {
    MutexLock lock(entry.mutex);
    for (std::uint64_t page = first; page <= last;) {
      if (!missing(entry, page)) {
        ++page;
        continue;
      }
      Run run = missing_run(entry, page, last);
      std::vector<MemoryReservation> memory;
      const std::uint64_t got = reserve_now(ctx, entry, run, memory);
      if (got > 0 && !extend(entry, who, ctx.priority, run, memory)) {
        auto fill = std::make_shared<Fill>(who.entry, who.source, who.owner, page, ctx);
        for (std::uint64_t i = 0; i < got; ++i) entry.filling[page + i] = fill;
        MutexLock fill_lock(fill->mutex);
        fill->page_total = fill->pages_open = got;
        fill->memory = std::move(memory);
        fill->state = Fill::State::kQueued;
        begun.push_back(std::move(fill));
      }
      page += got;
      if (got < run.count) {
        stopped_at = page;
        break;
      }
    }
  }
  for (const auto& fill : begun) {
    if (!submit(fill, ctx.priority)) stopped_at = std::min(stopped_at, fill->first_page);
  }
  const std::uint64_t covered_end = std::min(stopped_at * kPageBytes, end);
  return covered_end > range.offset ? covered_end - range.offset : 0;
}

void Filler::wait_for_room(const RequestContext& ctx, std::uint64_t bytes) {
  bytes = std::min(bytes, pages_per_fill_ * kPageBytes);
  for (int round = 0; round < kRoomRounds;) {
    if (memory_.available(ctx.priority) >= bytes || !ctx.check(clock_)) return;
    if (drop_held(false)) continue;
    memory_.wait_for_release(kMemoryRound);
    ++round;
  }
}

void Filler::cancel(std::uint64_t owner) {
  for (const auto& fill : scheduler_.queued_of(owner)) {
    {
      MutexLock lock(fill->mutex);
      if (fill->waiters > 0 || fill->priority == Priority::kForeground) continue;
    }
    // A fill that has begun to run since belongs to its thread.
    if (!scheduler_.remove(fill)) continue;
    // Whoever began to wait in between sees a failure that is not its own and fetches by itself.
    fail_fill(fill, Error(ErrorCode::kCancelled, "prefetch was dropped"));
  }
}

void Filler::expire_held() {
  HeldPages::Page page;
  while (held_.take_older(clock_.now() - kHoldTime, page)) {
    (void)drop_page(page.fill, page.page, Drop::kAlways);
    page = {};
  }
}

void Filler::shutdown() {
  for (const auto& fill : scheduler_.stop()) fail_fill(fill, Error(ErrorCode::kCancelled, "the cache is shutting down"));
  scheduler_.join(kShutdownGrace);
  device_pool_.shutdown();
  HeldPages::Page page;
  while (held_.take_oldest(page)) {
    (void)drop_page(page.fill, page.page, Drop::kAlways);
    page = {};
  }
}

}  // namespace thermo::cache
