#pragma once
// Checksums of recently read pages, so that a warm read costs one disk read and not two. Bounded, least recently used out.

#include <array>
#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "cache/layout.h"

namespace thermo::cache {

/// Thread-safe.
class CrcCache {
 public:
  explicit CrcCache(std::uint64_t limit_bytes);

  /// Copies the CRCs of blocks [first, first + out.size()) of `page` (counted within the page); false when the page is not here.
  [[nodiscard]] bool find(const VersionId& version, std::uint64_t page, std::size_t first, std::span<std::uint32_t> out);
  void put(const VersionId& version, std::uint64_t page, std::span<const std::uint32_t> crcs);
  void erase(const VersionId& version, std::uint64_t page);
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  struct Key {
    VersionId version;
    std::uint64_t page;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      return static_cast<std::size_t>(key.version.low ^ (key.page * 0x9e3779b97f4a7c15u));
    }
  };
  struct Item {
    Key key;
    std::vector<std::uint32_t> crcs;
  };
  // Sharded: 16 readers of one hot file would otherwise meet on one lock for every block.
  struct Shard {
    mutable Mutex mutex{LockRank::kCacheDevice, "crc cache"};
    std::list<Item> order GUARDED_BY(mutex);  // most recently used first
    std::unordered_map<Key, std::list<Item>::iterator, KeyHash> items GUARDED_BY(mutex);
    std::uint64_t bytes GUARDED_BY(mutex) = 0;
  };
  static constexpr std::size_t kShards = 8;

  [[nodiscard]] Shard& shard_of(const Key& key) { return shards_[(KeyHash{}(key) >> 7) % kShards]; }
  [[nodiscard]] static std::uint64_t cost(const Item& item) { return item.crcs.size() * 4 + 128; }
  void drop(Shard& shard, std::list<Item>::iterator it) REQUIRES(shard.mutex);

  const std::uint64_t shard_limit_;
  std::array<Shard, kShards> shards_;
};

}  // namespace thermo::cache
