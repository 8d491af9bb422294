// One fill from its GET to the disk. The body arrives on a thread of the HTTP client, which only copies; checksums and writes belong to
// the device's pool.

#include <algorithm>
#include <cstring>

#include "cache/filler.h"

namespace thermo::cache {

class Filler::Sink final : public store::BodySink {
 public:
  Sink(Filler& filler, FillPtr fill, std::vector<BufferPtr> buffers, std::uint64_t length)
      : filler_(filler), fill_(std::move(fill)), length_(length) {
    for (const auto& buffer : buffers) pages_.push_back(buffer->data());
  }

  Result<void> write(std::span<const std::byte> bytes) override {
    if (bytes.size() > length_ - at_) return fail(ErrorCode::kCorrupt, "the source sent more bytes than were asked for");
    while (!bytes.empty()) {
      const std::uint64_t page = at_ / kPageBytes;
      const std::uint64_t page_end = std::min((page + 1) * kPageBytes, length_);
      const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), page_end - at_));
      std::memcpy(pages_[page] + at_ % kPageBytes, piece.data(), piece.size());
      at_ += piece.size();
      bytes = bytes.subspan(piece.size());
      {
        MutexLock lock(fill_->mutex);
        fill_->received = at_;
        fill_->progress.notify_all();
      }
      if (at_ == page_end) filler_.page_complete(fill_, fill_->first_page + page);
    }
    return {};
  }

  [[nodiscard]] std::uint64_t received() const { return at_; }

 private:
  Filler& filler_;
  const FillPtr fill_;
  // Of pages that are complete the memory may be gone; the stream never goes back to them.
  std::vector<std::byte*> pages_;
  const std::uint64_t length_;
  std::uint64_t at_ = 0;
};

void Filler::run(const FillPtr& fill) {
  Entry& entry = *fill->entry;
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
  const std::uint64_t size = entry.ref.size;
  const std::uint64_t offset = fill->first_page * kPageBytes;
  const ByteRange range{offset, std::min(pages * kPageBytes, size - offset)};
  std::uint64_t cost = files_cost(size);
  std::vector<BufferPtr> buffers;
  for (std::uint64_t i = 0; i < pages; ++i) {
    cost += page_cost(size, fill->first_page + i);
    buffers.push_back(Buffer::allocate(std::move(memory[i]), page_length(size, fill->first_page + i)));
  }
  fill->admitted = tier_.admit(entry, cost, fill->epoch);
  {
    MutexLock lock(fill->mutex);
    fill->buffers = buffers;
    fill->settled.assign(pages, false);
  }

  Sink sink(*this, fill, std::move(buffers), range.length);
  ctx.deadline = clock_.now() + kFillTimeout;
  ctx.stop = fill->stop.get_token();
  ctx.request_id = fill->request_id;
  ctx.principal = fill->principal;
  tier_.metrics().fills.add();
  auto fetched = fill->source->fetch(ctx, entry.ref, range, sink);
  tier_.metrics().fill_bytes.add(sink.received());
  if (fetched && sink.received() < range.length) {
    fetched = fail(ErrorCode::kCorrupt, "the source sent " + std::to_string(sink.received()) + " of " + std::to_string(range.length) +
                                            " bytes of '" + entry.ref.key + "'");
  }
  if (!fetched) {
    tier_.metrics().fill_errors.add();
    fail_fill(fill, fetched.error());
    return;
  }
  MutexLock lock(fill->mutex);
  fill->state = Fill::State::kDone;
  fill->progress.notify_all();
}

void Filler::fail_fill(const FillPtr& fill, const Error& error) {
  Entry& entry = *fill->entry;
  const std::uint64_t size = entry.ref.size;
  std::uint64_t given_up = 0;
  std::uint64_t unused = 0;
  std::vector<std::uint64_t> revoked;
  std::vector<BufferPtr> closing;
  std::vector<MemoryReservation> memory;  // released without a lock held
  {
    MutexLock lock(entry.mutex);
    MutexLock fill_lock(fill->mutex);
    if (fill->state == Fill::State::kDone) return;
    fill->state = Fill::State::kDone;
    fill->error = error;
    // A checksum over the whole answer failed: nothing of it can be trusted, however complete it looks.
    fill->poisoned = error.code() == ErrorCode::kCorrupt && fill->received > 0;
    memory = std::move(fill->memory);
    for (std::uint64_t i = 0; i < fill->page_total; ++i) {
      const std::uint64_t page = fill->first_page + i;
      const bool complete = fill->received >= i * kPageBytes + page_length(size, page);
      if (complete && fill->poisoned) revoked.push_back(page);
      if (complete && !fill->poisoned) continue;
      const auto it = entry.filling.find(page);
      if (it != entry.filling.end() && it->second == fill) entry.filling.erase(it);
      if (complete) continue;  // its writer finds it poisoned
      if (i < fill->buffers.size()) closing.push_back(std::move(fill->buffers[i]));
      ++given_up;
      unused += page_cost(size, page);
    }
    fill->progress.notify_all();
  }
  memory.clear();
  closing.clear();
  for (const auto page : revoked) tier_.revoke(entry, page, fill->epoch);
  if (given_up == 0) return;
  if (fill->admitted) tier_.space().release(unused);
  pages_done(fill, given_up);
}

void Filler::pages_done(const FillPtr& fill, std::uint64_t count) {
  {
    MutexLock lock(fill->mutex);
    fill->pages_open -= count;
    if (fill->pages_open > 0) return;
  }
  if (!fill->admitted) return;
  tier_.space().release(files_cost(fill->entry->ref.size));
  tier_.unpin(*fill->entry);
}

void Filler::page_complete(const FillPtr& fill, std::uint64_t page) {
  const EntryPtr& entry = fill->entry;
  if (fill->admitted) {
    {
      MutexLock lock(entry->mutex);
      entry->writes.push_back({fill, page});
      if (entry->writing) return;
      entry->writing = true;
    }
    if (device_pool_.submit(Priority::kForeground, [this, entry] { write_loop(entry); })) return;
    // The device does not keep up: everything that waits for it is served from memory instead.
    std::deque<Entry::WriteJob> left;
    {
      MutexLock lock(entry->mutex);
      left.swap(entry->writes);
      entry->writing = false;
    }
    for (const auto& job : left) {
      tier_.space().release(page_cost(entry->ref.size, job.page));
      hold(job.fill, job.page);
      pages_done(job.fill, 1);
    }
    return;
  }
  hold(fill, page);
  pages_done(fill, 1);
}

void Filler::write_loop(const EntryPtr& entry) {
  while (true) {
    Entry::WriteJob job;
    {
      MutexLock lock(entry->mutex);
      if (entry->writes.empty()) {
        entry->writing = false;
        return;
      }
      job = std::move(entry->writes.front());
      entry->writes.pop_front();
    }
    write_one(job.fill, job.page);
  }
}

void Filler::write_one(const FillPtr& fill, std::uint64_t page) {
  const EntryPtr& entry = fill->entry;
  const std::uint64_t cost = page_cost(entry->ref.size, page);
  BufferPtr buffer;
  bool poisoned = false;
  {
    MutexLock lock(fill->mutex);
    buffer = fill->buffers[page - fill->first_page];
    poisoned = fill->poisoned;
  }
  if (poisoned || !tier_.device().may_write()) {
    tier_.space().release(cost);
    if (poisoned) (void)drop_page(fill, page, false);
    else hold(fill, page);
  } else if (tier_.write_page(entry, page, buffer->bytes(), fill->epoch, cost)) {
    (void)drop_page(fill, page, false);
    bool spoiled = false;
    {
      MutexLock lock(fill->mutex);
      spoiled = fill->poisoned;
    }
    if (spoiled) tier_.revoke(*entry, page, fill->epoch);
  } else {
    hold(fill, page);
  }
  pages_done(fill, 1);
}

void Filler::hold(const FillPtr& fill, std::uint64_t page) {
  tier_.metrics().bypass_pages.add();
  Entry& entry = *fill->entry;
  std::uint64_t healed = 0;
  {
    MutexLock lock(entry.mutex);
    const auto it = entry.healing.find(page);
    if (it != entry.healing.end()) {
      healed = it->second;
      entry.healing.erase(it);
    }
  }
  tier_.metrics().healed_blocks.add(healed);
  held_.add({fill, page, page_length(entry.ref.size, page), clock_.now()});
  // At most as many tries as pages: all may be wanted right now.
  for (std::size_t tries = held_.count(); tries > 0 && held_.over_limit(); --tries) (void)drop_held();
}

bool Filler::drop_held() {
  for (std::size_t tries = held_.count(); tries > 0; --tries) {
    HeldPages::Page page;
    if (!held_.take_oldest(page)) return false;
    if (drop_page(page.fill, page.page, true)) return true;
    held_.add(std::move(page));
  }
  return false;
}

bool Filler::drop_page(const FillPtr& fill, std::uint64_t page, bool only_unwanted) {
  Entry& entry = *fill->entry;
  BufferPtr closing;  // freed without a lock held
  FillPtr mapped;
  MutexLock lock(entry.mutex);
  MutexLock fill_lock(fill->mutex);
  if (only_unwanted && fill->waiters > 0) return false;
  // Who waits right now gets the bytes from here, without a way over the disk.
  fill->settled[page - fill->first_page] = true;
  if (fill->waiters == 0) closing.swap(fill->buffers[page - fill->first_page]);
  const auto it = entry.filling.find(page);
  if (it != entry.filling.end() && it->second == fill) {
    mapped = std::move(it->second);
    entry.filling.erase(it);
  }
  return true;
}

}  // namespace thermo::cache
