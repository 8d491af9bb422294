#include "cache/object.h"

#include <algorithm>
#include <cstring>

namespace thermo::cache {
namespace {

// Stop tokens have no connection to the condition variables: whoever waits looks at least this often.
constexpr Nanos kLookAgain = Millis(50);

}  // namespace

Handle::Handle(std::shared_ptr<Core> core, EntryPtr entry, std::shared_ptr<Source> source, std::uint64_t id)
    : core_(std::move(core)), entry_(std::move(entry)), source_(std::move(source)), id_(id) {}

Handle::~Handle() {
  cancel_prefetch();
  core_->table.released(entry_);
}

/// One read that is not a plain hit: page by page, from the disk or from fills, starting those that nobody has started.
class Handle::Gather {
 public:
  Gather(Handle& handle, const RequestContext& ctx, ByteRange range, std::span<std::byte> scratch)
      : handle_(handle), core_(*handle.core_), entry_(*handle.entry_), ctx_(ctx), range_(range), scratch_(scratch) {}
  ~Gather() { leave_mine(); }
  Gather(const Gather&) = delete;
  Gather& operator=(const Gather&) = delete;

  Result<PageReply> run() {
    TRY(core_.tier.ensure_loaded(ctx_, handle_.entry_));
    for (pos_ = range_.offset; pos_ < range_.end();) {
      const std::uint64_t end = std::min((pos_ / kPageBytes + 1) * kPageBytes, range_.end());
      TRY(page_part(end));
      pos_ = end;
    }
    core_.metrics.served_warm.add(from_disk_);
    core_.metrics.served_store.add(from_fills_);
    return std::move(reply_);
  }

 private:
  enum class Outcome { kServed, kAgain };

  Result<void> page_part(std::uint64_t end) {
    while (true) {
      TRY(ctx_.check(*core_.options.clock));
      TRY_ASSIGN(const Outcome outcome, step(end));
      if (outcome == Outcome::kServed) return {};
    }
  }

  /// One try at [pos_, end), which lies in one page, from wherever its bytes are right now.
  Result<Outcome> step(std::uint64_t end) {
    const std::uint64_t page = pos_ / kPageBytes;
    FillPtr fill = own_fill(page);
    Tier::View view;
    bool present = false;
    if (!fill) {
      MutexLock lock(entry_.mutex);
      const auto it = entry_.filling.find(page);
      if (it != entry_.filling.end()) {
        fill = it->second;
      } else if (entry_.has(page) && core_.tier.device().may_read()) {
        present = true;
        view = core_.tier.view(entry_);
      }
    }
    if (fill) return from_fill(fill, end);
    if (present) return from_disk(view, end);
    return begin_fill(page);
  }

  /// A fill that this read began and that still has the page's bytes, although they may be on disk by now.
  [[nodiscard]] FillPtr own_fill(std::uint64_t page) const {
    for (const auto& fill : mine_) {
      MutexLock lock(fill->mutex);
      const auto* const there = fill->find(page);
      if (there != nullptr && there->buffer && !fill->poisoned && fill->complete(page)) return fill;
    }
    return nullptr;
  }

  void leave_mine() {
    for (const auto& fill : mine_) {
      MutexLock lock(fill->mutex);
      fill->leave();
    }
    mine_.clear();
  }

  Result<Outcome> from_disk(Tier::View& view, std::uint64_t end) {
    if (!view.files) {
      if (!ctx_.may_wait) return fail(ErrorCode::kWouldWaitDevice);
      auto files = core_.tier.files(handle_.entry_);
      if (files) return Outcome::kAgain;  // the view is taken again with them
      // Gone from the tier, or not to be opened just now: this page comes from the source.
      MutexLock lock(entry_.mutex);
      if (entry_.epoch == view.epoch) entry_.clear(pos_ / kPageBytes);
      return Outcome::kAgain;
    }
    Tier::BadBlocks bad;
    const auto out = scratch_.subspan(pos_ - range_.offset, end - pos_);
    const auto done = core_.tier.read(entry_, view, ctx_.may_wait, {pos_, end - pos_}, out, bad);
    if (!done && done.error().code() == ErrorCode::kWouldWaitDevice) return fail(done.error());
    if (!done) return Outcome::kAgain;
    add_scratch(out);
    from_disk_ += out.size();
    return Outcome::kServed;
  }

  Result<Outcome> begin_fill(std::uint64_t page) {
    if (!ctx_.may_wait) return fail(ErrorCode::kWouldWaitStore);
    // An attempt of ours that failed before we came to wait for it counts all the same, or a dead store would keep us here.
    for (const auto& fill : mine_) {
      MutexLock lock(fill->mutex);
      if (fill->covers(page) && fill->error) return failed_own(*fill->error);
    }
    // Waiting for memory while holding memory that others wait for would be a circle.
    spill();
    leave_mine();
    const std::uint64_t last = (range_.end() - 1) / kPageBytes;
    TRY_ASSIGN(FillPtr fill, core_.filler.start(ctx_, {handle_.entry_, handle_.source_, handle_.id_}, page, last));
    if (fill) mine_.push_back(std::move(fill));
    return Outcome::kAgain;
  }

  Result<Outcome> from_fill(const FillPtr& fill, std::uint64_t end) {
    const std::uint64_t page = pos_ / kPageBytes;
    if (holding_) {
      bool reserving = false;
      {
        MutexLock lock(fill->mutex);
        reserving = fill->state == Fill::State::kReserving;
      }
      if (reserving) spill();
    }
    MutexLock lock(fill->mutex);
    if (fill->state == Fill::State::kQueued && ctx_.priority < fill->priority) {
      fill->priority = ctx_.priority;
      core_.filler.promote(fill, ctx_.priority);
    }
    ++fill->waiters;
    auto outcome = wait_for(*fill, page, end);
    fill->leave();
    return outcome;
  }

  /// Waits until [pos_, end) has arrived.
  Result<Outcome> wait_for(Fill& fill, std::uint64_t page, std::uint64_t end) REQUIRES(fill.mutex) {
    const std::uint64_t needed = end - fill.first_page * kPageBytes;
    while (true) {
      if (fill.received >= needed && !fill.poisoned) {
        Fill::Page* const there = fill.find(page);
        if (!there->buffer) {
          // On disk by now, or dropped; or the transfer broke off in this page after our bytes.
          return fill.complete(page) || !fill.error ? Result<Outcome>(Outcome::kAgain) : failed(fill, *fill.error, fill.priority);
        }
        if (end == page * kPageBytes + page_length(entry_.ref.size, page)) there->read = true;
        add_shared({there->buffer, there->buffer->bytes().subspan(pos_ - page * kPageBytes, end - pos_)});
        from_fills_ += end - pos_;
        return Outcome::kServed;
      }
      if (fill.error) return failed(fill, *fill.error, fill.priority);
      if (!ctx_.may_wait) return fail(ErrorCode::kWouldWaitStore);
      TRY(ctx_.check(*core_.options.clock));
      fill.wake_at = std::min(fill.wake_at, needed);
      const Nanos left = ctx_.deadline - core_.options.clock->now();
      (void)fill.progress.wait_until(fill.mutex, Clock::system().now() + std::min(kLookAgain, left));
    }
  }

  /// What the failure of a fill means to this reader.
  [[nodiscard]] Result<Outcome> failed(const Fill& fill, const Error& error, Priority fill_priority) const {
    const ErrorCode code = error.code();
    if (code == ErrorCode::kPreconditionFailed || code == ErrorCode::kNotFound) return failed_own(error);
    const bool mine = std::any_of(mine_.begin(), mine_.end(), [&](const FillPtr& f) { return f.get() == &fill; });
    // The same credentials just failed with the same urgency: asking again would only multiply the load on a store in trouble.
    const bool as_good_as_mine = fill.source == handle_.source_ && fill_priority == Priority::kForeground &&
                                 code != ErrorCode::kCancelled && code != ErrorCode::kTimeout && code != ErrorCode::kNoSpace;
    if (mine || as_good_as_mine) return fail(error);
    return Outcome::kAgain;
  }

  [[nodiscard]] Result<Outcome> failed_own(const Error& error) const {
    if (error.code() == ErrorCode::kPreconditionFailed || error.code() == ErrorCode::kNotFound) {
      return fail(ErrorCode::kStale, "'" + entry_.ref.key + "' was replaced or removed in the store; open it again");
    }
    return fail(error);
  }

  void add_scratch(std::span<std::byte> bytes) {
    if (!reply_.slices.empty()) {
      auto& last = reply_.slices.back();
      if (!last.owner && last.bytes.data() + last.bytes.size() == bytes.data()) {
        last.bytes = {last.bytes.data(), last.bytes.size() + bytes.size()};
        return;
      }
    }
    reply_.slices.push_back({nullptr, bytes});
  }

  void add_shared(Slice slice) {
    holding_ = true;
    reply_.slices.push_back(std::move(slice));
  }

  /// Copies what is held of fills into the scratch memory and lets go of it.
  void spill() {
    if (!holding_) return;
    std::size_t at = 0;
    for (const auto& slice : reply_.slices) {
      if (slice.owner) std::memcpy(scratch_.data() + at, slice.bytes.data(), slice.bytes.size());
      at += slice.bytes.size();
    }
    reply_.slices.clear();
    reply_.slices.push_back({nullptr, scratch_.first(at)});
    holding_ = false;
  }

  Handle& handle_;
  Core& core_;
  Entry& entry_;
  const RequestContext& ctx_;
  const ByteRange range_;
  const std::span<std::byte> scratch_;
  std::uint64_t pos_ = 0;
  PageReply reply_;
  bool holding_ = false;  // some slice keeps a fill's buffer alive
  std::vector<FillPtr> mine_;
  std::uint64_t from_disk_ = 0;
  std::uint64_t from_fills_ = 0;
};

Result<bool> Handle::read_resident(const RequestContext& ctx, ByteRange range, std::span<std::byte> scratch) {
  Tier& tier = core_->tier;
  if (!tier.device().may_read()) return false;
  Tier::View view;
  {
    Entry& entry = *entry_;
    MutexLock lock(entry.mutex);
    if (!entry.files) return false;
    for (std::uint64_t page = range.offset / kPageBytes; page <= (range.end() - 1) / kPageBytes; ++page) {
      if (!entry.has(page) || (!entry.filling.empty() && entry.filling.contains(page))) return false;
    }
    view = tier.view(entry);
  }
  Tier::BadBlocks bad;
  const auto done = tier.read(*entry_, view, ctx.may_wait, range, scratch.first(range.length), bad);
  if (done) {
    core_->metrics.served_warm.add(range.length);
    return true;
  }
  if (done.error().code() == ErrorCode::kWouldWaitDevice) return fail(done.error());
  return false;  // page by page, with healing
}

Result<PageReply> Handle::read(const RequestContext& ctx, ByteRange range, std::span<std::byte> scratch) {
  const std::uint64_t size = entry_->ref.size;
  if (range.offset >= size || range.length == 0) return PageReply{};
  range.length = std::min(range.length, size - range.offset);
  if (scratch.size() < range.length) {
    return fail(ErrorCode::kInvalidArgument,
                "read of " + std::to_string(range.length) + " bytes with scratch memory of " + std::to_string(scratch.size()));
  }
  TRY_ASSIGN(const bool served, read_resident(ctx, range, scratch));
  if (served) {
    PageReply reply;
    reply.slices.push_back({nullptr, scratch.first(range.length)});
    return reply;
  }
  return Gather(*this, ctx, range, scratch).run();
}

std::uint64_t Handle::prefetch(const RequestContext& ctx, ByteRange range) {
  prefetched_.store(true, std::memory_order_relaxed);
  if (core_->tier.ensure_loaded(ctx.waiting(false), entry_)) return core_->filler.prefetch(ctx, {entry_, source_, id_}, range);
  // What is missing the page table tells, and this call does not wait for the disk.
  const bool queued = core_->filler.on_device([ctx, range, weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || !self->core_->tier.ensure_loaded(ctx, self->entry_)) return;
    (void)self->core_->filler.prefetch(ctx, {self->entry_, self->source_, self->id_}, range);
  });
  const std::uint64_t size = entry_->ref.size;
  return queued && range.offset < size ? std::min(range.length, size - range.offset) : 0;
}

void Handle::cancel_prefetch() {
  if (prefetched_.exchange(false, std::memory_order_relaxed)) core_->filler.cancel(id_);
}

Residency residency_of(Entry& entry) {
  Residency residency;
  residency.size = entry.ref.size;
  MutexLock lock(entry.mutex);
  residency.resident = entry.resident_bytes;
  for (const auto& [page, fill] : entry.filling) {
    if (entry.has(page)) continue;
    MutexLock fill_lock(fill->mutex);
    const auto* const there = fill->find(page);
    if (there == nullptr || !there->held) residency.filling += page_length(entry.ref.size, page);
  }
  return residency;
}

Residency Handle::residency() const {
  (void)core_->tier.ensure_loaded(RequestContext(), entry_);
  return residency_of(*entry_);
}

}  // namespace thermo::cache
