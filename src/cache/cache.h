#pragma once
// The data cache: pages of object versions on a local disk, verified on the way out, filled from a Source when they are missing.
//
// Every byte is keyed by object version, so nothing here ever goes stale. Cache trouble (disk full, pulled, corrupt) is counted
// and routed around: a read fails only when the source cannot answer.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/context.h"
#include "base/metrics.h"
#include "io/file.h"
#include "store/object_store.h"

namespace thermo::cache {

using store::ByteRange;
using store::VersionId;

inline constexpr std::uint64_t kPageBytes = 1u << 20;     ///< unit of presence
inline constexpr std::uint64_t kBlockBytes = 4096;        ///< unit of checksum (CRC32C)
inline constexpr std::uint64_t kMaxFillBytes = 8u << 20;  ///< one GET: aligned to this when reading in order
/// Larger objects cannot be opened: what is kept per page of an open one would not fit into memory. 20 times the largest of any
/// store.
inline constexpr std::uint64_t kLargestObjectBytes = std::uint64_t{1} << 50;
inline constexpr std::uint64_t kSmallObjectBytes = 64u << 10;  ///< up to here: no sidecar, CRCs in the record

/// Names one object version and how to recognise it in the store. Value type.
struct ObjectRef {
  VersionId version;
  std::string store_id;
  std::string key;
  std::string etag;
  std::uint64_t size = 0;
};

/// Where missing bytes come from: the store today, peers in front of it later. Thread-safe, blocking.
class Source {
 public:
  virtual ~Source() = default;
  /// As ObjectStore::get_range with the object's ETag as condition.
  [[nodiscard]] virtual Result<void> fetch(const RequestContext& ctx, const ObjectRef& object, ByteRange range,
                                           store::BodySink& sink) = 0;
};

/// Bytes of a read: slices in order that together are the range, and the CRC32C of each whole or partial 4 KiB block they cover
/// when the caller asked for them.
struct PageReply {
  std::vector<Slice> slices;
  std::vector<std::uint32_t> block_crcs;
  [[nodiscard]] std::uint64_t size() const {
    std::uint64_t n = 0;
    for (const auto& s : slices) n += s.bytes.size();
    return n;
  }
};

/// How much of a version is where. Bytes.
struct Residency {
  std::uint64_t size = 0;
  std::uint64_t resident = 0;  ///< on the disk tier
  std::uint64_t filling = 0;   ///< on its way there
};

/// One open object version. Thread-safe. Keeps its Source; drops queued prefetches that nobody waits for when destroyed.
class Object {
 public:
  virtual ~Object() = default;
  [[nodiscard]] virtual const ObjectRef& ref() const = 0;

  /// Reads `range` (clipped to the object's end). Resident pages are verified against their CRCs; a mismatch heals from the
  /// source. Missing pages are filled (joined when somebody already fills them) and the reader gets the growing prefix. `scratch`
  /// is where disk bytes may be put (size >= range.length, lives as long as the reply is used). ctx.may_wait false:
  /// kWouldWaitDevice / kWouldWaitStore instead of waiting.
  [[nodiscard]] virtual Result<PageReply> read(const RequestContext& ctx, ByteRange range, std::span<std::byte> scratch) = 0;

  /// Starts filling the missing pages of `range` in GETs of at most kMaxFillBytes that end on multiples of it, and returns at
  /// once. Neighbouring misses become one GET. Drops what the memory budget or the queue does not admit: returns the bytes that
  /// are now resident or on their way. Priority from ctx.
  virtual std::uint64_t prefetch(const RequestContext& ctx, ByteRange range) = 0;
  /// Waits a short while until the memory budget has room for a GET of `bytes`: for a reader in order that caught up with what
  /// was fetched ahead, and for whom one whole GET a little later is better than many small ones now. No promise that the room
  /// stays.
  virtual void wait_for_room(const RequestContext& ctx, std::uint64_t bytes) = 0;
  /// Forgets queued prefetches of this handle that have not started.
  virtual void cancel_prefetch() = 0;

  [[nodiscard]] virtual Residency residency() const = 0;
};
using ObjectPtr = std::shared_ptr<Object>;

/// Where the copies of a range are. Part of the interface from the start for placement; today: this node, or nowhere.
struct Location {
  ByteRange range;
  std::string tier;  ///< "warm"
};

struct Options {
  std::shared_ptr<io::Disk> disk;  ///< the tier's folder
  std::uint64_t limit_bytes = 0;   ///< of object files and sidecars, as st_blocks counts
  std::size_t fill_threads = 48;   ///< GETs in flight at most
  std::size_t device_threads = 16;
  std::uint64_t crc_cache_bytes = 16u << 20;
  MemoryBudget* memory = nullptr;        ///< required
  metrics::Registry* metrics = nullptr;  ///< required
  const Clock* clock = &Clock::system();
};

struct Status {
  std::uint64_t limit_bytes = 0;
  std::uint64_t used_bytes = 0;  ///< charged, reservations included; never above the limit
  std::uint64_t objects = 0;
  std::string device_state;  ///< "ok", "degraded" (reads only), "failed"
  std::string device_reason;
};

/// Thread-safe.
class Cache {
 public:
  virtual ~Cache() = default;

  /// A handle on a version. Never fails for cache trouble, and touches neither network nor disk: what is here of the version is
  /// looked up when it is read. Waits only while the same version is being removed. The version is not larger than
  /// kLargestObjectBytes.
  [[nodiscard]] virtual ObjectPtr open(const ObjectRef& ref, std::shared_ptr<Source> source) = 0;

  /// Residency without opening. kWouldWaitDevice with may_wait false.
  [[nodiscard]] virtual Result<Residency> residency(const RequestContext& ctx, const ObjectRef& ref) = 0;
  [[nodiscard]] virtual std::vector<Location> locations(const ObjectRef& ref, ByteRange range) = 0;

  /// Drops a version from the tier: the bytes that this freed. Never touches the store. Open handles go on from the source.
  [[nodiscard]] virtual Result<std::uint64_t> free(const VersionId& version) = 0;

  [[nodiscard]] virtual Status status() = 0;
  /// Changes the byte limit; eviction converges to it.
  virtual void set_limit(std::uint64_t bytes) = 0;

  /// Finishes or cancels fills, writes records down, marks the folder cleanly closed. Idempotent.
  virtual void shutdown() = 0;
};

/// Opens (creates) the tier in options.disk. Errors that the user must mend: folder not writable, made by another version, held
/// by another process. A broken record database is rebuilt from the sidecars, with a warning.
[[nodiscard]] Result<std::unique_ptr<Cache>> open_cache(const Options& options);

}  // namespace thermo::cache
