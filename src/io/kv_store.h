#pragma once
// An ordered key-value database (RocksDB) behind a header without RocksDB in it: catalog, object records, later the journal.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace thermo::io {

/// Writes applied together or not at all.
class KvBatch {
 public:
  void put(std::string_view key, std::string_view value) { ops_.push_back({std::string(key), std::string(value), false}); }
  void remove(std::string_view key) { ops_.push_back({std::string(key), {}, true}); }
  [[nodiscard]] bool empty() const { return ops_.empty(); }
  [[nodiscard]] std::size_t size() const { return ops_.size(); }

 private:
  friend class RocksKv;
  struct Op {
    std::string key, value;
    bool is_remove;
  };
  std::vector<Op> ops_;
};

/// Thread-safe. Keys in bytewise order. Errors: kCorrupt (open it with `recreate` after moving it away), kIo, kNoSpace, kBusy
/// (locked by another process).
class KvStore {
 public:
  virtual ~KvStore() = default;
  /// nullopt when missing. With may_wait false: kWouldWaitDevice when the block is not in memory.
  [[nodiscard]] virtual Result<std::optional<std::string>> get(std::string_view key, bool may_wait = true) = 0;
  /// `sync`: returns after the write is on the device.
  [[nodiscard]] virtual Result<void> write(const KvBatch& batch, bool sync = false) = 0;
  /// Calls `visit(key, value)` for keys >= `from` in order until it returns false; a visit may name a later key to skip to via
  /// `seek`. Iterates over a consistent snapshot. With may_wait false: kWouldWaitDevice when a block is not in memory.
  struct Cursor {
    std::string seek;  ///< set by the visitor: go on at this key instead of the next one
  };
  [[nodiscard]] virtual Result<void> scan(
      std::string_view from, const std::function<bool(std::string_view key, std::string_view value, Cursor& cursor)>& visit,
      bool may_wait = true) = 0;
  /// Writes everything down; called before a clean stop.
  [[nodiscard]] virtual Result<void> flush() = 0;
  /// Bytes of memory: memtables and block cache.
  [[nodiscard]] virtual std::uint64_t memory_bytes() = 0;
};

struct KvOptions {
  std::string path;
  std::uint64_t cache_bytes = 32u << 20;  ///< block cache; bounded, index and filter blocks included
  std::uint64_t write_buffer_bytes = 8u << 20;
};

[[nodiscard]] Result<std::unique_ptr<KvStore>> open_kv(const KvOptions& options);
/// Deletes the database's files.
[[nodiscard]] Result<void> destroy_kv(const std::string& path);

}  // namespace thermo::io
