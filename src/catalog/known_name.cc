#include "catalog/known_name.h"

#include <utility>

namespace thermo::catalog {

KnownNamePtr MemoryIndex::find(std::string_view path) {
  Shard& shard = shard_of(path);
  MutexLock lock(shard.mutex);
  const auto it = shard.items.find(path);
  if (it == shard.items.end()) return nullptr;
  shard.order.splice(shard.order.begin(), shard.order, it->second);
  return it->second->known;
}

std::optional<std::string> MemoryIndex::path_of(Number number) {
  NumberShard& shard = shard_of(number);
  MutexLock lock(shard.mutex);
  const auto it = shard.paths.find(number);
  if (it == shard.paths.end()) return std::nullopt;
  return it->second;
}

void MemoryIndex::insert(std::string_view path, const KnownNamePtr& known, std::uint64_t epoch) {
  if (epoch % 2 == 0) store(path, known, epoch);
}

void MemoryIndex::put(std::string_view path, const KnownNamePtr& known) { store(path, known, std::nullopt); }

void MemoryIndex::store(std::string_view path, const KnownNamePtr& known, std::optional<std::uint64_t> epoch) {
  KnownNamePtr replaced;
  KnownNamePtr evicted;
  Shard& shard = shard_of(path);
  {
    MutexLock lock(shard.mutex);
    // Checked under the shard's lock: a writer raises the epoch first and takes this lock to drop what it changed afterwards, so
    // whatever slips in here before is dropped by it.
    if (epoch && this->epoch() != *epoch) return;
    const auto it = shard.items.find(path);
    if (it != shard.items.end()) {
      replaced = std::exchange(it->second->known, known);
      shard.order.splice(shard.order.begin(), shard.order, it->second);
    } else {
      shard.order.push_front({std::string(path), known});
      shard.items.emplace(shard.order.front().path, shard.order.begin());
      if (shard.order.size() > shard_capacity_) {
        evicted = std::move(shard.order.back().known);
        shard.items.erase(shard.order.back().path);
        shard.order.pop_back();
      }
    }
  }
  if (replaced) forget_numbers(*replaced);
  if (evicted) forget_numbers(*evicted);
  remember_numbers(*known, path);
}

void MemoryIndex::drop(std::string_view path) {
  KnownNamePtr dropped;
  Shard& shard = shard_of(path);
  {
    MutexLock lock(shard.mutex);
    const auto it = shard.items.find(path);
    if (it == shard.items.end()) return;
    dropped = std::move(it->second->known);
    const auto position = it->second;
    shard.items.erase(it);
    shard.order.erase(position);
  }
  forget_numbers(*dropped);
}

void MemoryIndex::clear() {
  for (auto& shard : shards_) {
    MutexLock lock(shard.mutex);
    shard.items.clear();
    shard.order.clear();
  }
  for (auto& shard : numbers_) {
    MutexLock lock(shard.mutex);
    shard.paths.clear();
  }
}

void MemoryIndex::remember_numbers(const KnownName& known, std::string_view path) {
  for (const Number number : {known.file ? known.file->number : 0, known.folder ? known.folder->number : 0}) {
    if (number == 0) continue;
    NumberShard& shard = shard_of(number);
    MutexLock lock(shard.mutex);
    // Racing evictions could leave numbers behind; starting over costs a few database reads.
    if (shard.paths.size() > 4 * shard_capacity_) shard.paths.clear();
    shard.paths[number] = path;
  }
}

void MemoryIndex::forget_numbers(const KnownName& known) {
  for (const Number number : {known.file ? known.file->number : 0, known.folder ? known.folder->number : 0}) {
    if (number == 0) continue;
    NumberShard& shard = shard_of(number);
    MutexLock lock(shard.mutex);
    shard.paths.erase(number);
  }
}

std::uint64_t MemoryIndex::memory_bytes() {
  std::uint64_t bytes = 0;
  for (auto& shard : shards_) {
    MutexLock lock(shard.mutex);
    for (const auto& item : shard.order) {
      bytes += 256 + item.path.size() * 2 + sizeof(KnownName);
      if (item.known->file) bytes += item.known->file->key.size() + item.known->file->etag.size();
    }
  }
  return bytes;
}

}  // namespace thermo::catalog
