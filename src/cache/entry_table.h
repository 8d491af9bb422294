#pragma once
// The table of entries. An entry lives here while anybody holds it, and some time longer, so that opening it again costs no disk
// read.

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "cache/entry.h"

namespace thermo::cache {

/// Thread-safe.
class EntryTable {
 public:
  /// Entries kept although nobody holds them.
  static constexpr std::size_t kIdleEntries = 8192;  // about 8 MB

  /// The entry of a version, made when there is none. Waits while the version is claimed by somebody who works on its files.
  [[nodiscard]] EntryPtr acquire(const ObjectRef& ref);
  /// The entry of a version, null when there is none.
  [[nodiscard]] EntryPtr find(const VersionId& version) const;
  /// Tells that a holder is done; the entry may become idle.
  void released(const EntryPtr& entry);

  /// Keeps everybody from making an entry for `version` until unclaim(). Returns the entry when there is one: then nothing is
  /// claimed.
  [[nodiscard]] EntryPtr claim(const VersionId& version);
  void unclaim(const VersionId& version);

  /// Takes out idle entries beyond `keep`, oldest first; each is claimed: unclaim() after its record was written.
  [[nodiscard]] std::vector<EntryPtr> trim(std::size_t keep);
  [[nodiscard]] std::vector<EntryPtr> all() const;
  [[nodiscard]] std::size_t idle() const;

 private:
  mutable Mutex mutex_{LockRank::kCacheTable, "cache table"};
  CondVar unclaimed_;
  std::unordered_map<VersionId, EntryPtr> entries_ GUARDED_BY(mutex_);
  std::unordered_set<VersionId> claimed_ GUARDED_BY(mutex_);
  std::deque<VersionId> idle_ GUARDED_BY(mutex_);            // candidates; some may be in use again
  std::unordered_set<VersionId> listed_ GUARDED_BY(mutex_);  // what is in idle_: each once
};

/// RAII of claim().
class Claim {
 public:
  Claim(EntryTable& table, const VersionId& version) : table_(table), version_(version), entry_(table.claim(version)) {}
  ~Claim() {
    if (!entry_) table_.unclaim(version_);
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  [[nodiscard]] const EntryPtr& entry() const { return entry_; }

 private:
  EntryTable& table_;
  const VersionId version_;
  const EntryPtr entry_;
};

}  // namespace thermo::cache
