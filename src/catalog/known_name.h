#pragma once
// What is known of one name: the object of that key and the folder of that prefix, either or both or (as far as was asked)
// neither. A bounded memory of such names keeps hot lookups away from the database.

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"
#include "catalog/records.h"

namespace thermo::catalog {

struct KnownName {
  std::optional<File> file;
  WallNanos file_checked = 0;
  bool file_alone = false;       ///< `file_checked` told of the name: the object, and that no folder hides it
  std::optional<Folder> folder;  ///< its number; whether it exists, `folder_seen` tells
  WallNanos folder_seen = 0;
  WallNanos listed_at = 0;
  WallNanos sealed_at = 0;
  std::uint32_t pages = 0;
  WallNanos absent_at = 0;  ///< when the store was asked for this very name and had neither; memory only
  [[nodiscard]] bool folder_exists() const { return folder_seen != 0; }
};
using KnownNamePtr = std::shared_ptr<const KnownName>;

/// Thread-safe. A path is a key without, or a prefix stripped of, its last '/'.
class MemoryIndex {
 public:
  explicit MemoryIndex(std::size_t capacity) : shard_capacity_(std::max<std::size_t>(1, capacity / kShards)) {}

  [[nodiscard]] KnownNamePtr find(std::string_view path);
  /// The path that had this number when it was put in; check it against find().
  [[nodiscard]] std::optional<std::string> path_of(Number number);

  /// To be taken before the database is read; insert() ignores what was read across a change.
  [[nodiscard]] std::uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }
  void insert(std::string_view path, const KnownNamePtr& known, std::uint64_t epoch);

  /// A change of the database: begin, write, drop or put what changed, end. One at a time.
  void begin_change() { epoch_.fetch_add(1, std::memory_order_acq_rel); }
  void drop(std::string_view path);
  void put(std::string_view path, const KnownNamePtr& known);
  void clear();
  void end_change() { epoch_.fetch_add(1, std::memory_order_acq_rel); }

  [[nodiscard]] std::uint64_t memory_bytes();

 private:
  static constexpr std::size_t kShards = 16;
  struct Item {
    std::string path;
    KnownNamePtr known;
  };
  struct Shard {
    Mutex mutex{LockRank::kCatalog, "catalog names"};
    std::list<Item> order GUARDED_BY(mutex);  // most recently used first
    std::unordered_map<std::string_view, std::list<Item>::iterator> items GUARDED_BY(mutex);
  };
  struct NumberShard {
    Mutex mutex{LockRank::kCatalog, "catalog numbers"};
    std::unordered_map<Number, std::string> paths GUARDED_BY(mutex);
  };
  [[nodiscard]] Shard& shard_of(std::string_view path) { return shards_[std::hash<std::string_view>()(path) % kShards]; }
  [[nodiscard]] NumberShard& shard_of(Number number) { return numbers_[number % kShards]; }
  void store(std::string_view path, const KnownNamePtr& known, std::optional<std::uint64_t> epoch);
  void remember_numbers(const KnownName& known, std::string_view path);
  void forget_numbers(const KnownName& known);

  const std::size_t shard_capacity_;
  std::atomic<std::uint64_t> epoch_{0};  // odd: a change is under way
  std::array<Shard, kShards> shards_;
  std::array<NumberShard, kShards> numbers_;
};

}  // namespace thermo::catalog
