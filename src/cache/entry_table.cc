#include "cache/entry_table.h"

namespace thermo::cache {

EntryPtr EntryTable::acquire(const ObjectRef& ref) {
  MutexLock lock(mutex_);
  while (claimed_.contains(ref.version)) unclaimed_.wait(mutex_);
  auto& slot = entries_[ref.version];
  if (!slot) slot = std::make_shared<Entry>(ref);
  return slot;
}

EntryPtr EntryTable::find(const VersionId& version) const {
  MutexLock lock(mutex_);
  const auto it = entries_.find(version);
  return it == entries_.end() ? nullptr : it->second;
}

void EntryTable::released(const EntryPtr& entry) {
  MutexLock lock(mutex_);
  // The caller's own reference and the table's: nobody else. A fill that ends later leaves it to trim().
  if (entry.use_count() <= 2 && listed_.insert(entry->ref.version).second) idle_.push_back(entry->ref.version);
}

EntryPtr EntryTable::claim(const VersionId& version) {
  MutexLock lock(mutex_);
  while (claimed_.contains(version)) unclaimed_.wait(mutex_);
  const auto it = entries_.find(version);
  if (it != entries_.end()) return it->second;
  claimed_.insert(version);
  return nullptr;
}

void EntryTable::unclaim(const VersionId& version) {
  MutexLock lock(mutex_);
  claimed_.erase(version);
  unclaimed_.notify_all();
}

std::vector<EntryPtr> EntryTable::trim(std::size_t keep) {
  std::vector<EntryPtr> gone;
  MutexLock lock(mutex_);
  // Entries whose last holder was a fill are in nobody's list: when the table has outgrown the list by far, make a new one.
  if (entries_.size() > keep + idle_.size() + kIdleEntries || (keep == 0 && !entries_.empty())) {
    idle_.clear();
    listed_.clear();
    for (const auto& [version, entry] : entries_) {
      if (entry.use_count() == 1 && listed_.insert(version).second) idle_.push_back(version);
    }
  }
  while (idle_.size() > keep) {
    const VersionId version = idle_.front();
    idle_.pop_front();
    listed_.erase(version);
    const auto it = entries_.find(version);
    // New references come only from this table, under its lock, or from a holder: with a count of 1 there is no holder.
    if (it == entries_.end() || it->second.use_count() != 1) continue;
    claimed_.insert(version);
    gone.push_back(std::move(it->second));
    entries_.erase(it);
  }
  return gone;
}

std::vector<EntryPtr> EntryTable::all() const {
  MutexLock lock(mutex_);
  std::vector<EntryPtr> entries;
  entries.reserve(entries_.size());
  for (const auto& [version, entry] : entries_) entries.push_back(entry);
  return entries;
}

std::size_t EntryTable::idle() const {
  MutexLock lock(mutex_);
  return idle_.size();
}

}  // namespace thermo::cache
