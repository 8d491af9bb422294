#pragma once
// One folder of object files: where pages are written, read back and verified, what they are charged for, who is evicted. Knows
// nothing of readers and sources. Whatever goes wrong on the device is a value here, and never more than a miss for the caller.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>

#include "base/log.h"
#include "cache/cache_metrics.h"
#include "cache/crc_cache.h"
#include "cache/device_state.h"
#include "cache/entry_table.h"
#include "cache/open_files.h"
#include "cache/record_store.h"
#include "cache/space.h"

namespace thermo::cache {

/// Thread-safe.
class Tier {
 public:
  Tier(const Options& options, CacheMetrics& metrics, EntryTable& table);

  // --- tier_open.cc: the folder's life ---
  /// Locks the folder, checks its format, opens the records and builds the table of resident objects.
  [[nodiscard]] Result<void> open();
  /// Settles every record and marks the folder cleanly closed.
  void close();
  /// After an unclean stop or with a new database: finds files that no record knows and records without files. Long; ends early
  /// on stop.
  void sweep(const std::stop_token& stop);
  [[nodiscard]] bool needs_sweep() const { return sweep_needed_.load(std::memory_order_relaxed); }
  /// Tries the device while it is not ok: makes the folder anew when it is gone, then writes and reads a small file.
  void probe_if_due();

  // --- tier_load.cc: an object's page table ---
  /// Reads the page table from disk unless that was done. Damaged files are dropped. An error is one of the waiting: kTimeout,
  /// kCancelled, kWouldWaitDevice (may_wait false; never for a version of which the tier has nothing).
  [[nodiscard]] Result<void> ensure_loaded(const RequestContext& ctx, const EntryPtr& entry);
  /// Bytes resident of a version that is not open.
  [[nodiscard]] Result<std::uint64_t> resident_bytes(const ObjectRef& ref, bool may_wait);
  /// The object's open files; opens them when they are closed. An error means that the object is gone from the tier.
  [[nodiscard]] Result<FilesPtr> files(const EntryPtr& entry);
  /// Writes down what the entry is now, if its record says that it is being filled. As write_page(): one call at a time.
  void settle_record(Entry& entry);

  // --- tier_read.cc ---
  /// What a read needs of an entry, taken under its lock.
  struct View {
    FilesPtr files;
    std::uint64_t epoch = 0;
    std::uint32_t small_crcs[kSmallObjectBytes / kBlockBytes] = {};  ///< set for objects without a sidecar only
  };
  [[nodiscard]] View view(Entry& entry) const REQUIRES(entry.mutex);
  struct BadBlocks {
    std::uint64_t page = 0;
    std::uint64_t count = 0;
  };
  /// Reads `range` of pages that are present into `out` and verifies every block it touches. kWouldWaitDevice with may_wait
  /// false; kCorrupt fills `bad`: the page is marked absent and counted.
  [[nodiscard]] Result<void> read(Entry& entry, const View& view, bool may_wait, ByteRange range, std::span<std::byte> out,
                                  BadBlocks& bad);

  // --- tier_write.cc: space and writing ---
  /// Makes room for a fill of `bytes` and pins the object; false: serve it without caching. `epoch` is the transfer's.
  [[nodiscard]] bool admit(Entry& entry, std::uint64_t bytes, std::uint64_t& epoch);
  void unpin(const Entry& entry) { space_.unpin(entry.ref.version); }
  /// Writes a complete page and its checksums, marks it present for this process and charges for it; `reserved` bytes of the
  /// reservation end in any case. kStale when the object was evicted meanwhile. One call of write_page() or vouch() at a time per
  /// entry.
  [[nodiscard]] Result<void> write_page(const EntryPtr& entry, std::uint64_t page, std::span<const std::byte> bytes,
                                        Transfer transfer, std::uint64_t reserved);
  /// The transfer ended well: what it wrote may be believed by the next process too.
  void vouch(const EntryPtr& entry, Transfer transfer);
  /// The transfer's bytes turned out to be wrong: what it wrote is absent again.
  void revoke(Entry& entry, Transfer transfer);

  // --- tier_evict.cc ---
  /// Drops one object; the bytes freed.
  [[nodiscard]] Result<std::uint64_t> free(const VersionId& version);
  /// Evicts until the limit holds again.
  void converge();

  [[nodiscard]] Space& space() { return space_; }
  [[nodiscard]] DeviceState& device() { return device_; }
  [[nodiscard]] CacheMetrics& metrics() { return metrics_; }
  [[nodiscard]] std::vector<EntryPtr> entries() const { return table_.all(); }

 private:
  // tier_open.cc
  [[nodiscard]] Result<bool> check_format();
  [[nodiscard]] Result<void> write_format();
  /// The folder of a version's files, made when the first comes.
  [[nodiscard]] Result<void> make_bucket(const VersionId& version);
  [[nodiscard]] Result<bool> load_records();
  [[nodiscard]] Result<void> probe();
  [[nodiscard]] Result<void> start_over();
  [[nodiscard]] Result<void> sweep_bucket(unsigned bucket, const std::vector<VersionId>& known, const std::stop_token& stop);

  // tier_load.cc
  [[nodiscard]] bool may_be_on_disk(const ObjectRef& ref) const;
  void load(const EntryPtr& entry);
  [[nodiscard]] Result<void> load_small(const EntryPtr& entry, std::uint64_t epoch);
  [[nodiscard]] Result<void> load_large(const EntryPtr& entry, std::uint64_t epoch);
  /// Charge and record of files that nobody has open, from what the sidecar says.
  [[nodiscard]] Result<void> adopt(const VersionId& version);
  [[nodiscard]] Result<std::shared_ptr<io::File>> open_file(const std::string& path, io::OpenMode mode);
  [[nodiscard]] Result<std::shared_ptr<io::File>> create_file(const VersionId& version, const std::string& path);
  [[nodiscard]] Result<std::shared_ptr<io::File>> open_existing(const std::string& path);
  [[nodiscard]] Result<Files> open_files(const ObjectRef& ref);
  /// Takes note that an object's files are damaged or gone.
  void drop_damaged(const ObjectRef& ref, const Error& why);

  // tier_read.cc
  [[nodiscard]] Result<void> block_crcs(Entry& entry, const View& view, bool may_wait, std::uint64_t page, std::size_t first,
                                        std::span<std::uint32_t> out);
  void page_bad(Entry& entry, std::uint64_t epoch, const BadBlocks& bad);

  // tier_write.cc
  [[nodiscard]] bool make_room(std::uint64_t bytes);
  [[nodiscard]] Result<FilesPtr> create_files(const EntryPtr& entry, std::uint64_t epoch);
  [[nodiscard]] Result<FilesPtr> files_to_write(const EntryPtr& entry, std::uint64_t epoch);
  [[nodiscard]] Result<std::uint64_t> write_to_disk(const EntryPtr& entry, std::uint64_t page, std::span<const std::byte> bytes,
                                                    std::span<const std::uint32_t> crcs, std::uint64_t epoch);
  void write_failed(const EntryPtr& entry, const Error& error, std::uint64_t epoch, std::uint64_t reserved);
  [[nodiscard]] Result<void> write_bitmap(Entry& entry, const Files& files, std::uint64_t first_page, std::uint64_t last_page);
  [[nodiscard]] static Result<std::uint64_t> charge_of(const Files& files);
  void put_record(Entry& entry, RecordState state);

  // tier_evict.cc
  /// Unlinks the files, removes the record and the charge; the entry, if there is one, forgets its pages. What was charged; an
  /// error when a file could not be removed: then the charge stays.
  Result<std::uint64_t> drop(const VersionId& version);
  void evict(const std::vector<Space::Victim>& victims);
  [[nodiscard]] Result<void> remove_files(const VersionId& version);

  const std::shared_ptr<io::Disk> disk_;
  const Clock& clock_;
  CacheMetrics& metrics_;
  EntryTable& table_;
  Space space_;
  DeviceState device_;
  CrcCache crcs_;
  RecordStore records_;
  OpenFiles open_files_;
  log::RateLimit damage_log_;
  log::RateLimit record_log_;
  std::unique_ptr<io::File> lock_;
  std::atomic<bool> sweep_needed_{false};
  /// True while files may exist that no record knows: opening an object looks for them.
  std::atomic<bool> strays_{false};
  /// False while the charge of what is on disk is not known: nothing is admitted.
  std::atomic<bool> charges_known_{true};
};

}  // namespace thermo::cache
