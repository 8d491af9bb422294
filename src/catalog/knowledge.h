#pragma once
// Reads what is known of one store: names from memory or the database, since when they are known, and the children of a folder in
// key order. Never asks the store.

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "catalog/floors.h"
#include "catalog/known_name.h"
#include "catalog/told_absent.h"

namespace thermo::catalog {

/// Thread-safe. Errors: kWouldWaitDevice (may_wait false and a block is not in memory), kCorrupt, kIo.
class Knowledge {
 public:
  Knowledge(io::KvStore& kv, StoreNumber store, std::string store_id, std::size_t names_in_memory);

  [[nodiscard]] Result<KnownNamePtr> name(std::string_view path, bool may_wait);

  /// A name, and since when that is known: by an answer about it, or by a listing of a folder above it; 0 = it has to be asked
  /// for.
  struct Dated {
    KnownNamePtr known;
    WallNanos since = 0;
  };
  [[nodiscard]] Result<Dated> dated_name(std::string_view path, std::string_view root, bool may_wait);
  /// Since when the direct children of `prefix` are known in full; 0 = they are not.
  [[nodiscard]] Result<WallNanos> listing_since(std::string_view prefix, std::string_view root, bool may_wait);

  /// Visits files and folders directly in `prefix` after the name `after` in key order. An object beside a folder of the same
  /// name is left out. After an error the names visited so far are no complete answer.
  [[nodiscard]] Result<void> children(std::string_view prefix, std::string_view after,
                                      const std::function<bool(const ListedName&)>& visit, bool may_wait);

  /// kStale when no file or folder of this store has the number.
  [[nodiscard]] Result<Entry> by_number(Number number, bool may_wait);

  /// The root of a mount exists even when the store has nothing below it.
  void add_root(const std::string& prefix);
  [[nodiscard]] bool is_root(std::string_view prefix) const;

  [[nodiscard]] File to_file(std::string_view key, const FileRecord& record) const;
  [[nodiscard]] static Folder to_folder(std::string_view prefix, const FolderRecord& record);

  [[nodiscard]] io::KvStore& kv() { return kv_; }
  [[nodiscard]] StoreNumber store() const { return store_; }
  [[nodiscard]] const std::string& store_id() const { return store_id_; }
  [[nodiscard]] MemoryIndex& memory() { return memory_; }
  [[nodiscard]] Floors& floors() { return floors_; }
  [[nodiscard]] ToldAbsent& told_absent() { return told_absent_; }

 private:
  /// The same as listing_since, whatever was declared expired.
  [[nodiscard]] Result<WallNanos> vouched_since(std::string_view prefix, std::string_view root, bool may_wait);

  io::KvStore& kv_;
  const StoreNumber store_;
  const std::string store_id_;
  MemoryIndex memory_;
  Floors floors_;
  ToldAbsent told_absent_;
  mutable Mutex roots_mutex_{LockRank::kCatalog, "catalog roots"};
  std::set<std::string, std::less<>> roots_ GUARDED_BY(roots_mutex_);
};

}  // namespace thermo::catalog
