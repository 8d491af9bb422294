#pragma once
// What is known in memory of one object version that is open, being filled or recently used: the page table and who works on it.

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "cache/layout.h"
#include "io/file.h"

namespace thermo::cache {

class Fill;
using FillPtr = std::shared_ptr<Fill>;

/// Who writes pages: the id of a fill, and the entry's epoch when it was admitted.
struct Transfer {
  std::uint64_t id = 0;
  std::uint64_t epoch = 0;
};

/// The open files of an object. Shared with readers in flight: eviction unlinks them, the last reader closes them.
struct Files {
  std::shared_ptr<io::File> object;
  std::shared_ptr<io::File> sidecar;  ///< null where there is none
};
using FilesPtr = std::shared_ptr<const Files>;

struct Entry {
  explicit Entry(const ObjectRef& r) : ref(r), pages(page_count(r.size)) {}

  const ObjectRef ref;
  const std::uint64_t pages;

  Mutex mutex{LockRank::kCacheObject, "cache object"};
  CondVar changed;  ///< ready, evicting

  bool ready GUARDED_BY(mutex) = false;         ///< the page table was read from disk, or there is none
  bool loading GUARDED_BY(mutex) = false;       ///< somebody reads it
  bool evicting GUARDED_BY(mutex) = false;      ///< its files are being unlinked: nothing may be admitted
  bool on_disk GUARDED_BY(mutex) = false;       ///< it has files
  bool record_open GUARDED_BY(mutex) = false;   ///< its record says that it is being filled
  bool record_stale GUARDED_BY(mutex) = false;  ///< its record says less than is known by now
  /// Grows when the object lost its files. What began under an older epoch must not mark pages as present.
  std::uint64_t epoch GUARDED_BY(mutex) = 0;
  /// Pages that can be read from the files; empty while there are none, as is the next.
  std::vector<std::uint8_t> bitmap GUARDED_BY(mutex);
  /// Pages whose bit is set in the sidecar: what the next process will believe. A page becomes one when the transfer that brought
  /// it has ended well.
  std::vector<std::uint8_t> vouched GUARDED_BY(mutex);
  std::unordered_map<std::uint64_t, std::uint64_t> unvouched GUARDED_BY(mutex);  ///< present page -> id of the fill that wrote it
  std::uint64_t resident_bytes GUARDED_BY(mutex) = 0;
  FilesPtr files GUARDED_BY(mutex);                                            ///< null: open them when needed
  std::vector<std::uint32_t> small_crcs GUARDED_BY(mutex);                     ///< of an object without a sidecar
  std::unordered_map<std::uint64_t, FillPtr> filling GUARDED_BY(mutex);        ///< page -> who has its bytes in memory, or will
  std::unordered_map<std::uint64_t, std::uint64_t> healing GUARDED_BY(mutex);  ///< page -> blocks that were found bad
  /// A complete page on its way to the disk, or (no page) the good end of a transfer, or (no fill) a record to be settled. One
  /// thread at a time writes an object, in this order, so neither its sidecar's bitmap nor its record needs other care.
  struct WriteJob {
    FillPtr fill;
    std::optional<std::uint64_t> page;
  };
  std::list<WriteJob> writes GUARDED_BY(mutex);
  bool writing GUARDED_BY(mutex) = false;

  [[nodiscard]] bool has(std::uint64_t page) const REQUIRES(mutex) { return bit(bitmap, page); }
  void set(std::uint64_t page) REQUIRES(mutex);
  void clear(std::uint64_t page) REQUIRES(mutex);
  /// No page is present any more and the files are gone; what is on its way belongs to the past.
  void forget() REQUIRES(mutex);
  [[nodiscard]] bool is_vouched(std::uint64_t page) const REQUIRES(mutex) { return bit(vouched, page); }
  [[nodiscard]] bool record_due() const REQUIRES(mutex) { return record_open || record_stale; }
  void set_vouched(std::uint64_t page, bool value) REQUIRES(mutex);

 private:
  [[nodiscard]] static bool bit(const std::vector<std::uint8_t>& bits, std::uint64_t page) {
    return page / 8 < bits.size() && (bits[page / 8] >> (page % 8) & 1) != 0;
  }
};
using EntryPtr = std::shared_ptr<Entry>;

}  // namespace thermo::cache
