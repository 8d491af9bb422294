#pragma once
// Open handles by id.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "vfs/vfs.h"

namespace thermo::vfs {

/// Sharded, so that readers on different handles do not meet. Thread-safe; what it holds is destroyed outside its locks. Not
/// limited: every handle belongs to an open file of some process, which the kernel limits.
template <class T>
class HandleTable {
 public:
  using Ptr = std::shared_ptr<T>;

  [[nodiscard]] Ptr find(HandleId id) const {
    const Shard& shard = shard_of(id);
    MutexLock lock(shard.mutex);
    const auto found = shard.handles.find(id);
    return found == shard.handles.end() ? nullptr : found->second;
  }

  /// Any handle that `wanted` accepts. Looks at all of them: for rare questions.
  template <class Wanted>
  [[nodiscard]] Ptr find_if(Wanted&& wanted) const {
    for (const Shard& shard : shards_) {
      MutexLock lock(shard.mutex);
      for (const auto& [id, handle] : shard.handles) {
        if (wanted(*handle)) return handle;
      }
    }
    return nullptr;
  }

  /// Answers what is there when somebody was faster and `accept` says it will do; else replaces it.
  template <class Accept>
  Ptr insert(HandleId id, Ptr handle, Accept&& accept) {
    Shard& shard = shard_of(id);
    Ptr replaced;
    MutexLock lock(shard.mutex);
    const auto [at, added] = shard.handles.try_emplace(id, handle);
    if (added) {
      size_.fetch_add(1, std::memory_order_relaxed);
      return handle;
    }
    if (accept(*at->second)) return at->second;
    replaced = std::exchange(at->second, handle);
    return handle;
  }
  void insert(HandleId id, Ptr handle) {
    (void)insert(id, std::move(handle), [](const T&) { return false; });
  }

  void erase(HandleId id) {
    Shard& shard = shard_of(id);
    Ptr gone;
    MutexLock lock(shard.mutex);
    const auto found = shard.handles.find(id);
    if (found == shard.handles.end()) return;
    gone = std::move(found->second);
    shard.handles.erase(found);
    size_.fetch_sub(1, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  struct Shard {
    mutable Mutex mutex{LockRank::kVfs, "vfs handles"};
    std::unordered_map<HandleId, Ptr> handles GUARDED_BY(mutex);
  };
  static constexpr std::size_t kShards = 16;
  [[nodiscard]] Shard& shard_of(HandleId id) { return shards_[id % kShards]; }
  [[nodiscard]] const Shard& shard_of(HandleId id) const { return shards_[id % kShards]; }

  std::array<Shard, kShards> shards_;
  std::atomic<std::uint64_t> size_{0};
};

}  // namespace thermo::vfs
