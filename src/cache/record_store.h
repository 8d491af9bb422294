#pragma once
// The records in their database. A database that cannot be used costs planning knowledge, never a read: errors are values here
// and the caller goes on without.

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "cache/record.h"
#include "io/kv_store.h"

namespace thermo::cache {

/// Thread-safe.
class RecordStore {
 public:
  enum class Opened { kExisting, kNew, kRebuilt };

  explicit RecordStore(std::string path) : path_(std::move(path)) {}

  /// Opens the database; one that is corrupt is deleted and made anew (kRebuilt, with a warning). kBusy, kNoSpace, kIo,
  /// kReadOnly.
  [[nodiscard]] Result<Opened> open();
  /// Deletes the database and starts an empty one.
  [[nodiscard]] Result<void> recreate();

  [[nodiscard]] Result<void> put(const Record& record);
  [[nodiscard]] Result<void> remove(const VersionId& version);
  [[nodiscard]] Result<std::optional<Record>> get(const VersionId& version, bool may_wait = true);
  /// Every record's head, in no useful order. Malformed ones are reported with nullopt.
  [[nodiscard]] Result<void> scan(const std::function<void(const VersionId&, const std::optional<RecordHead>&)>& visit);
  /// Writes something small; opens the database again when it refuses, anew when it is corrupt.
  [[nodiscard]] Result<void> check();
  [[nodiscard]] Result<void> flush();
  void close();
  /// False once a change could not be written: what is on disk then no longer tells everything.
  [[nodiscard]] bool complete() const { return complete_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] std::shared_ptr<io::KvStore> db() const;
  [[nodiscard]] Result<void> open_db();
  [[nodiscard]] Result<void> write(const io::KvBatch& batch);

  const std::string path_;
  std::atomic<bool> complete_{true};
  mutable Mutex mutex_{LockRank::kLeaf, "record store"};
  std::shared_ptr<io::KvStore> db_ GUARDED_BY(mutex_);
};

}  // namespace thermo::cache
