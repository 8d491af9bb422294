#include "cache/crc_cache.h"

#include <cstring>

namespace thermo::cache {

CrcCache::CrcCache(std::uint64_t limit_bytes) : shard_limit_(limit_bytes / kShards) {}

bool CrcCache::find(const VersionId& version, std::uint64_t page, std::size_t first, std::span<std::uint32_t> out) {
  const Key key{version, page};
  Shard& shard = shard_of(key);
  MutexLock lock(shard.mutex);
  const auto it = shard.items.find(key);
  if (it == shard.items.end()) return false;
  const auto& crcs = it->second->crcs;
  if (first + out.size() > crcs.size()) return false;
  std::memcpy(out.data(), crcs.data() + first, out.size_bytes());
  if (it->second != shard.order.begin()) shard.order.splice(shard.order.begin(), shard.order, it->second);
  return true;
}

void CrcCache::put(const VersionId& version, std::uint64_t page, std::span<const std::uint32_t> crcs) {
  Item item{{version, page}, {crcs.begin(), crcs.end()}};
  Shard& shard = shard_of(item.key);
  MutexLock lock(shard.mutex);
  const auto old = shard.items.find(item.key);
  if (old != shard.items.end()) drop(shard, old->second);
  shard.bytes += cost(item);
  shard.order.push_front(std::move(item));
  shard.items.emplace(shard.order.front().key, shard.order.begin());
  while (shard.bytes > shard_limit_ && !shard.order.empty()) drop(shard, std::prev(shard.order.end()));
}

void CrcCache::erase(const VersionId& version, std::uint64_t page) {
  const Key key{version, page};
  Shard& shard = shard_of(key);
  MutexLock lock(shard.mutex);
  const auto it = shard.items.find(key);
  if (it != shard.items.end()) drop(shard, it->second);
}

void CrcCache::drop(Shard& shard, std::list<Item>::iterator it) {
  shard.bytes -= cost(*it);
  shard.items.erase(it->key);
  shard.order.erase(it);
}

std::uint64_t CrcCache::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& shard : shards_) {
    MutexLock lock(shard.mutex);
    sum += shard.bytes;
  }
  return sum;
}

}  // namespace thermo::cache
