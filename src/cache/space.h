#pragma once
// The byte limit: what objects are charged for plus what fills have reserved never exceeds it. Decides who is evicted; does no
// I/O.

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/metrics.h"
#include "base/mutex.h"
#include "cache/replacement.h"

namespace thermo::cache {

/// Thread-safe.
class Space {
 public:
  Space(std::uint64_t limit_bytes, metrics::Gauge& used, metrics::Gauge& limit);

  /// True when `bytes` fit now; they count from here on until release() or settle().
  [[nodiscard]] bool reserve(std::uint64_t bytes);
  void release(std::uint64_t bytes);

  /// Objects whose removal makes room for `bytes` more, oldest first, without pinned ones. They leave the table, and their charge
  /// counts until evicted() (no second caller gets them). kOrNone: empty when the unpinned ones together are too few, nobody goes
  /// in vain.
  struct Victim {
    VersionId id;
    std::uint64_t charge;
  };
  enum class Enough : std::uint8_t { kOrNone, kOrLess };
  [[nodiscard]] std::vector<Victim> take_victims(std::uint64_t bytes, Enough enough = Enough::kOrNone);
  void evicted(std::uint64_t charge);
  /// Waits a moment while somebody else's eviction is under way; false when none is.
  [[nodiscard]] bool wait_for_eviction();

  /// The object now occupies `charge`; `reserved` bytes of its reservation are given back.
  void settle(const VersionId& id, std::uint64_t charge, std::uint64_t reserved);
  /// As found at start, oldest first.
  void restore(const VersionId& id, std::uint64_t charge, std::uint64_t order);
  /// Takes an object out; its charge, nullopt when it is not there.
  [[nodiscard]] std::optional<std::uint64_t> remove(const VersionId& id);
  void hit(const VersionId& id);

  /// While pinned an object is no victim. Counted.
  void pin(const VersionId& id);
  void unpin(const VersionId& id);

  [[nodiscard]] std::optional<Replacement::Item> find(const VersionId& id) const;
  [[nodiscard]] std::vector<VersionId> all() const;
  void set_limit(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t limit() const;
  [[nodiscard]] std::uint64_t used() const;
  [[nodiscard]] std::size_t objects() const;
  /// Bytes above the limit (after it was lowered).
  [[nodiscard]] std::uint64_t excess() const;

 private:
  void publish() REQUIRES(mutex_);

  mutable Mutex mutex_{LockRank::kCacheSpace, "cache space"};
  CondVar evicted_;
  const std::unique_ptr<Replacement> replacement_ PT_GUARDED_BY(mutex_);
  std::unordered_map<VersionId, std::uint32_t> pins_ GUARDED_BY(mutex_);
  std::uint64_t limit_ GUARDED_BY(mutex_);
  std::uint64_t charged_ GUARDED_BY(mutex_) = 0;  // of objects in the table
  std::uint64_t leaving_ GUARDED_BY(mutex_) = 0;  // of victims not yet gone
  std::uint64_t reserved_ GUARDED_BY(mutex_) = 0;
  std::uint64_t next_order_ GUARDED_BY(mutex_) = 1;
  metrics::Gauge& used_gauge_;
  metrics::Gauge& limit_gauge_;
};

}  // namespace thermo::cache
