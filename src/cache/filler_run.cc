// One fill from its GET to complete pages in memory. The body arrives on a thread of the HTTP client, which only copies.

#include <algorithm>
#include <cstring>

#include "cache/filler.h"

namespace thermo::cache {

class Filler::Sink final : public store::BodySink {
 public:
  Sink(Filler& filler, FillPtr fill, std::vector<MemoryReservation> memory, std::uint64_t length)
      : filler_(filler), fill_(std::move(fill)), memory_(std::move(memory)), length_(length) {}

  Result<void> write(std::span<const std::byte> bytes) override {
    if (bytes.size() > length_ - at_) return fail(ErrorCode::kCorrupt, "the source sent more bytes than were asked for");
    while (!bytes.empty()) {
      const std::uint64_t page = at_ / kPageBytes;
      const std::uint64_t page_end = std::min((page + 1) * kPageBytes, length_);
      if (at_ % kPageBytes == 0) begin_page(page, page_end - at_);
      const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), page_end - at_));
      std::memcpy(memory_of_page_ + at_ % kPageBytes, piece.data(), piece.size());
      at_ += piece.size();
      bytes = bytes.subspan(piece.size());
      {
        MutexLock lock(fill_->mutex);
        fill_->advance(at_);
      }
      if (at_ == page_end) filler_.page_complete(fill_, fill_->first_page + page);
    }
    return {};
  }

  [[nodiscard]] std::uint64_t received() const { return at_; }
  /// Nothing will come any more.
  void release() { memory_.clear(); }

 private:
  /// Memory is taken page by page: what went to the disk meanwhile is used again, so that parallel transfers touch little of it.
  void begin_page(std::uint64_t page, std::uint64_t bytes) {
    auto buffer = Buffer::allocate(std::move(memory_[page]), bytes);
    memory_of_page_ = buffer->data();
    MutexLock lock(fill_->mutex);
    fill_->pages[page].buffer = std::move(buffer);
  }

  Filler& filler_;
  const FillPtr fill_;
  std::vector<MemoryReservation> memory_;  // one per page, empty of those that came
  // Of the page that is coming. It is there until the page is complete, which only this stream makes it: no one else ends a fill
  // that runs. Of complete pages it may be gone; the stream never goes back to them.
  std::byte* memory_of_page_ = nullptr;
  const std::uint64_t length_;
  std::uint64_t at_ = 0;
};

void Filler::run(const FillPtr& fill) {
  Entry& entry = *fill->entry;
  const std::uint64_t size = entry.ref.size;
  std::uint64_t pages = 0;
  RequestContext ctx;
  std::vector<MemoryReservation> memory;
  {
    MutexLock lock(fill->mutex);
    if (fill->state != Fill::State::kQueued) return;
    fill->state = Fill::State::kRunning;
    pages = fill->page_total;
    ctx.priority = fill->priority;
    memory = std::move(fill->memory);
  }
  const std::uint64_t offset = fill->first_page * kPageBytes;
  const ByteRange range{offset, std::min(pages * kPageBytes, size - offset)};
  std::uint64_t cost = files_cost(size);
  for (std::uint64_t i = 0; i < pages; ++i) cost += page_cost(size, fill->first_page + i);
  fill->admitted = tier_.admit(entry, cost, fill->epoch);
  Sink sink(*this, fill, std::move(memory), range.length);
  {
    MutexLock lock(fill->mutex);
    fill->pages.resize(pages);
  }

  ctx.deadline = clock_.now() + kFillTimeout;
  ctx.stop = fill->stop.get_token();
  ctx.request_id = fill->request_id;
  ctx.principal = fill->principal;
  tier_.metrics().fills.add();
  auto fetched = fill->source->fetch(ctx, entry.ref, range, sink);
  tier_.metrics().fill_bytes.add(sink.received());
  if (fetched && sink.received() < range.length) {
    fetched = fail(ErrorCode::kCorrupt, "the source sent " + std::to_string(sink.received()) + " of " +
                                            std::to_string(range.length) + " bytes of '" + entry.ref.key + "'");
  }
  if (!fetched) {
    tier_.metrics().fill_errors.add();
    sink.release();
    fail_fill(fill, fetched.error());
    return;
  }
  {
    MutexLock lock(fill->mutex);
    fill->state = Fill::State::kDone;
    fill->wake_all();
  }
  transfer_ended(fill);
}

void Filler::fail_fill(const FillPtr& fill, const Error& error) {
  Entry& entry = *fill->entry;
  const std::uint64_t size = entry.ref.size;
  std::uint64_t given_up = 0;
  std::uint64_t unused = 0;
  bool poisoned = false;
  std::vector<BufferPtr> closing;
  std::vector<MemoryReservation> memory;  // released without a lock held
  {
    MutexLock lock(entry.mutex);
    MutexLock fill_lock(fill->mutex);
    fill->state = Fill::State::kDone;
    fill->error = error;
    // A checksum over the whole answer failed: nothing of it can be trusted, however complete it looks.
    poisoned = fill->poisoned = error.code() == ErrorCode::kCorrupt && fill->received > 0;
    memory = std::move(fill->memory);
    for (std::uint64_t i = 0; i < fill->page_total; ++i) {
      const std::uint64_t page = fill->first_page + i;
      const bool complete = fill->complete(page);
      if (complete && !poisoned) continue;
      const auto it = entry.filling.find(page);
      if (it != entry.filling.end() && it->second == fill) entry.filling.erase(it);
      if (complete) continue;  // whoever writes or holds it finds it poisoned
      if (auto* const there = fill->find(page)) closing.push_back(std::move(there->buffer));
      ++given_up;
      unused += page_cost(size, page);
    }
    fill->wake_all();
  }
  memory.clear();
  closing.clear();
  if (poisoned) tier_.revoke(entry, fill->transfer());
  else transfer_ended(fill);
  if (given_up == 0) return;
  if (fill->admitted) tier_.space().release(unused);
  pages_done(fill, given_up);
}

}  // namespace thermo::cache
