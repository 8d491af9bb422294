// Complete pages from memory to the disk, or, when they cannot go there, into the pool of held pages for a while. Checksums and
// writes are done by the device's pool.

#include <algorithm>

#include "cache/filler.h"

namespace thermo::cache {

void Filler::page_complete(const FillPtr& fill, std::uint64_t page) {
  if (fill->admitted) {
    enqueue(fill->entry, {fill, page});
    return;
  }
  hold(fill, page);
  pages_done(fill, 1);
}

void Filler::transfer_ended(const FillPtr& fill) {
  if (fill->admitted) enqueue(fill->entry, {fill, std::nullopt});
}

void Filler::enqueue(const EntryPtr& entry, Entry::WriteJob job) {
  tier_.metrics().pending_writes.add(1);
  {
    MutexLock lock(entry->mutex);
    entry->writes.push_back(std::move(job));
    if (entry->writing) return;
    entry->writing = true;
  }
  if (on_device([this, entry] { write_loop(entry); })) return;
  {
    MutexLock lock(entry->mutex);
    entry->writing = false;
  }
  shed(entry);
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
    if (!job.fill) tier_.settle_record(*entry);
    else if (job.page) write_one(job.fill, *job.page);
    else tier_.vouch(entry, job.fill->transfer());
    tier_.metrics().pending_writes.add(-1);
  }
}

void Filler::write_one(const FillPtr& fill, std::uint64_t page) {
  const std::uint64_t cost = page_cost(fill->entry->ref.size, page);
  BufferPtr buffer;
  bool poisoned = false;
  {
    MutexLock lock(fill->mutex);
    buffer = fill->find(page)->buffer;
    poisoned = fill->poisoned;
  }
  if (poisoned || !tier_.device().may_write()) {
    tier_.space().release(cost);
    if (poisoned) (void)drop_page(fill, page, Drop::kAlways);
    else hold(fill, page);
  } else if (tier_.write_page(fill->entry, page, buffer->bytes(), fill->transfer(), cost)) {
    (void)drop_page(fill, page, Drop::kAlways);
    bool spoiled = false;
    {
      MutexLock lock(fill->mutex);
      spoiled = fill->poisoned;
    }
    if (spoiled) tier_.revoke(*fill->entry, fill->transfer());
  } else {
    hold(fill, page);
  }
  pages_done(fill, 1);
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

void Filler::settle_quiet() {
  for (const auto& entry : tier_.entries()) {
    bool quiet = false;
    {
      MutexLock lock(entry->mutex);
      quiet = entry->record_due() && entry->on_disk && entry->filling.empty() && entry->writes.empty() && !entry->writing;
    }
    if (quiet) enqueue(entry, {});
  }
}

void Filler::shed(const EntryPtr& entry) {
  std::list<Entry::WriteJob> left;
  {
    MutexLock lock(entry->mutex);
    // Others stay: they hold no memory, and pages that were written wait for the ends of their transfers.
    for (auto it = entry->writes.begin(); it != entry->writes.end();) {
      const auto next = std::next(it);
      if (it->page) left.splice(left.end(), entry->writes, it);
      it = next;
    }
  }
  for (const auto& job : left) {
    tier_.space().release(page_cost(entry->ref.size, *job.page));
    hold(job.fill, *job.page);
    pages_done(job.fill, 1);
    tier_.metrics().pending_writes.add(-1);
  }
}

void Filler::shed_all() {
  for (const auto& entry : tier_.entries()) shed(entry);
}

void Filler::hold(const FillPtr& fill, std::uint64_t page) {
  tier_.metrics().bypass_pages.add();
  Entry& entry = *fill->entry;
  std::uint64_t healed = 0;
  bool poisoned = false;
  {
    MutexLock lock(entry.mutex);
    const auto it = entry.healing.find(page);
    if (it != entry.healing.end()) {
      healed = it->second;
      entry.healing.erase(it);
    }
    MutexLock fill_lock(fill->mutex);
    fill->find(page)->held = true;
    poisoned = fill->poisoned;
  }
  tier_.metrics().healed_blocks.add(healed);
  if (poisoned) {
    (void)drop_page(fill, page, Drop::kAlways);
    return;
  }
  held_.add({fill, page, page_length(entry.ref.size, page), clock_.now()});
  // At most as many tries as pages: all may be wanted right now.
  for (std::size_t tries = held_.count(); tries > 0 && held_.over_limit(); --tries) (void)drop_held(true);
}

bool Filler::drop_held(bool unread_too) {
  // Those that were read to their end go first: a page that was fetched ahead is worth more than one that was used.
  for (const Drop condition : {Drop::kRead, Drop::kUnwanted}) {
    if (condition == Drop::kUnwanted && !unread_too) return false;
    for (std::size_t tries = held_.count(); tries > 0; --tries) {
      HeldPages::Page page;
      if (!held_.take_oldest(page)) return false;
      if (drop_page(page.fill, page.page, condition)) return true;
      held_.add(std::move(page));
    }
  }
  return false;
}

bool Filler::drop_page(const FillPtr& fill, std::uint64_t page, Drop condition) {
  Entry& entry = *fill->entry;
  BufferPtr closing;  // freed without a lock held
  FillPtr mapped;
  MutexLock lock(entry.mutex);
  MutexLock fill_lock(fill->mutex);
  Fill::Page& there = *fill->find(page);
  if (condition != Drop::kAlways && fill->waiters > 0) return false;
  if (condition == Drop::kRead && !there.read) return false;
  // Who waits right now gets the bytes from here, without a way over the disk.
  there.settled = true;
  if (fill->waiters == 0) closing.swap(there.buffer);
  const auto it = entry.filling.find(page);
  if (it != entry.filling.end() && it->second == fill) {
    mapped = std::move(it->second);
    entry.filling.erase(it);
  }
  return true;
}

}  // namespace thermo::cache
