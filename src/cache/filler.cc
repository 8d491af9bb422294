// Which pages a GET takes and whether there is memory for them. What happens then is in filler_run.cc.

#include "cache/filler.h"

#include <algorithm>

namespace thermo::cache {
namespace {

// A GET takes at most a quarter of the memory: several must fit side by side.
std::uint64_t fill_pages(const MemoryBudget& memory) {
  return std::clamp<std::uint64_t>(memory.limit() / kPageBytes / 4, 1, kPagesPerFill);
}

}  // namespace

Filler::Filler(const Options& options, Tier& tier)
    : tier_(tier),
      memory_(*options.memory),
      clock_(*options.clock),
      pages_per_fill_(fill_pages(memory_)),
      held_(memory_.limit() / 4),
      device_pool_({.name = "cache-disk", .threads = std::max<std::size_t>(options.device_threads, 1), .max_queued = 4096}),
      scheduler_(options.fill_threads, [this](const FillPtr& fill) { run(fill); }) {}

Filler::~Filler() { shutdown(); }

bool Filler::missing(Entry& entry, std::uint64_t page) const {
  return !entry.filling.contains(page) && !(entry.has(page) && tier_.device().may_read());
}

Filler::Run Filler::missing_run(Entry& entry, std::uint64_t first, std::uint64_t last) const {
  // GETs of readers in order end on the same offsets, whoever begins them: so they meet instead of overlapping.
  const std::uint64_t end = std::min({last + 1, (first / kPagesPerFill + 1) * kPagesPerFill, first + pages_per_fill_, entry.pages});
  Run run{first, 0};
  while (first + run.count < end && missing(entry, first + run.count)) ++run.count;
  return run;
}

std::size_t Filler::reserve_now(const RequestContext& ctx, const Entry& entry, Run run, std::vector<MemoryReservation>& out) const {
  const RequestContext now = ctx.waiting(false);
  while (out.size() < run.count) {
    auto got = memory_.reserve(now, page_length(entry.ref.size, run.first + out.size()));
    if (!got) break;
    out.push_back(std::move(*got));
  }
  return out.size();
}

Result<void> Filler::reserve_waiting(const RequestContext& ctx, const Entry& entry, Run run, std::vector<MemoryReservation>& out) {
  while (reserve_now(ctx, entry, run, out) < run.count) {
    // Bytes that only might be read again make room for bytes that somebody waits for.
    if (drop_held()) continue;
    RequestContext slice = ctx;
    slice.deadline = std::min(ctx.deadline, clock_.now() + Millis(50));
    auto got = memory_.reserve(slice, page_length(entry.ref.size, run.first + out.size()));
    if (got) {
      out.push_back(std::move(*got));
      continue;
    }
    TRY(ctx.check(clock_));
    if (got.error().code() != ErrorCode::kTimeout) return fail(std::move(got).error());
  }
  return {};
}

Result<FillPtr> Filler::start(const RequestContext& ctx, const Requester& who, std::uint64_t page, std::uint64_t last) {
  Entry& entry = *who.entry;
  FillPtr fill;
  Run run{};
  bool reserved = false;
  {
    MutexLock lock(entry.mutex);
    if (!missing(entry, page)) return FillPtr();
    run = missing_run(entry, page, last);
    fill = std::make_shared<Fill>(who.entry, who.source, who.owner, page, ctx);
    std::vector<MemoryReservation> memory;
    const std::size_t got = reserve_now(ctx, entry, run, memory);
    // Less is enough to go on: a GET of the pages that fit beats waiting for the rest.
    if (got > 0) run.count = got;
    reserved = got > 0;
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
    std::vector<MemoryReservation> memory;
    const auto waited = reserve_waiting(ctx, entry, run, memory);
    if (!waited) {
      memory.clear();
      fail_fill(fill, waited.error());
      return fail(waited.error());
    }
    MutexLock lock(fill->mutex);
    fill->memory = std::move(memory);
    fill->state = Fill::State::kQueued;
  }
  const auto submitted = scheduler_.submit(fill, ctx.priority);
  if (!submitted) {
    fail_fill(fill, submitted.error());
    return fail(submitted.error());
  }
  return fill;
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
  while (memory_.available(ctx.priority) < end - range.offset && drop_held()) {
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
    const auto submitted = scheduler_.submit(fill, ctx.priority);
    if (submitted) continue;
    stopped_at = std::min(stopped_at, fill->first_page);
    fail_fill(fill, submitted.error());
  }
  const std::uint64_t covered_end = std::min(stopped_at * kPageBytes, end);
  return covered_end > range.offset ? covered_end - range.offset : 0;
}

void Filler::cancel(std::uint64_t owner) {
  for (const auto& fill : scheduler_.queued_of(owner)) {
    {
      MutexLock lock(fill->mutex);
      if (fill->state != Fill::State::kQueued || fill->waiters > 0 || fill->priority == Priority::kForeground) continue;
    }
    scheduler_.remove(fill);
    // Whoever began to wait in between sees a failure that is not its own and fetches by itself.
    fail_fill(fill, Error(ErrorCode::kCancelled, "prefetch was dropped"));
  }
}

void Filler::expire_held() {
  HeldPages::Page page;
  while (held_.take_older(clock_.now() - kHoldTime, page)) {
    (void)drop_page(page.fill, page.page, false);
    page = {};
  }
}

void Filler::shutdown() {
  for (const auto& fill : scheduler_.stop()) fail_fill(fill, Error(ErrorCode::kCancelled, "the cache is shutting down"));
  scheduler_.join(std::chrono::seconds(5));
  device_pool_.shutdown();
  HeldPages::Page page;
  while (held_.take_oldest(page)) {
    (void)drop_page(page.fill, page.page, false);
    page = {};
  }
}

}  // namespace thermo::cache
