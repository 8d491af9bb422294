// How an object's page table comes from its sidecar or its record.

#include <cerrno>

#include "cache/sidecar.h"
#include "cache/tier.h"

namespace thermo::cache {
namespace {

// Stop tokens have no connection to the condition variables: whoever waits looks at least this often.
constexpr Nanos kLookAgain = Millis(50);

Error wrong(const std::string& what) { return Error(ErrorCode::kCorrupt, what); }

/// Bits beyond the last page must be zero, or counting would go wrong.
void mask_tail(std::vector<std::uint8_t>& bitmap, std::uint64_t pages) {
  if (pages % 8 != 0) bitmap.back() = static_cast<std::uint8_t>(bitmap.back() & ((1u << (pages % 8)) - 1));
}

}  // namespace

Result<std::shared_ptr<io::File>> Tier::open_file(const std::string& path, io::OpenMode mode) {
  auto file = disk_->open(path, mode);
  // The process is out of descriptors: ours are the ones that can be given up.
  if (!file && (file.error().sys_errno() == EMFILE || file.error().sys_errno() == ENFILE) && open_files_.close_some()) {
    file = disk_->open(path, mode);
  }
  if (!file) return fail(std::move(file).error());
  return std::shared_ptr<io::File>(std::move(*file));
}

Result<std::shared_ptr<io::File>> Tier::open_existing(const std::string& path) {
  auto file = open_file(path, io::OpenMode::kReadWrite);
  // A device that became read-only still serves what it has.
  if (!file && (file.error().code() == ErrorCode::kReadOnly || file.error().code() == ErrorCode::kAccessDenied)) {
    file = open_file(path, io::OpenMode::kRead);
  }
  return file;
}

Result<Files> Tier::open_files(const ObjectRef& ref) {
  Files files;
  TRY_ASSIGN(files.object, open_existing(object_path(ref.version)));
  if (has_sidecar(ref.size)) {
    TRY_ASSIGN(files.sidecar, open_existing(sidecar_path(ref.version)));
  }
  return files;
}

bool Tier::may_be_on_disk(const ObjectRef& ref) const {
  return ref.size > 0 && (strays_.load(std::memory_order_relaxed) || space_.find(ref.version).has_value());
}

Result<void> Tier::ensure_loaded(const RequestContext& ctx, const EntryPtr& entry) {
  {
    MutexLock lock(entry->mutex);
    while (entry->loading) {
      if (!ctx.may_wait) return fail(ErrorCode::kWouldWaitDevice);
      TRY(ctx.check(clock_));
      (void)entry->changed.wait_until(entry->mutex, Clock::system().now() + kLookAgain);
    }
    if (entry->ready || !device_.may_read()) return {};  // later then
    if (!may_be_on_disk(entry->ref)) {
      entry->ready = true;
      return {};
    }
    if (!ctx.may_wait) return fail(ErrorCode::kWouldWaitDevice);
    entry->loading = true;
  }
  load(entry);
  MutexLock lock(entry->mutex);
  entry->loading = false;
  entry->ready = true;
  entry->changed.notify_all();
  return {};
}

void Tier::load(const EntryPtr& entry) {
  std::uint64_t epoch = 0;
  {
    MutexLock lock(entry->mutex);
    epoch = entry->epoch;
  }
  const bool known = space_.find(entry->ref.version).has_value();
  const auto loaded = has_sidecar(entry->ref.size) ? load_large(entry, epoch) : load_small(entry, epoch);
  if (loaded) {
    if (known) space_.hit(entry->ref.version);
    open_files_.opened(entry);
    return;
  }
  switch (loaded.error().code()) {
    case ErrorCode::kStale: return;  // evicted meanwhile
    case ErrorCode::kNotFound:
      if (known) drop_damaged(entry->ref, loaded.error());
      return;
    case ErrorCode::kCorrupt: drop_damaged(entry->ref, loaded.error()); return;
    // Says nothing about what is there. The pages come from the source; if they are cached again, it is over the old files.
    default: device_.read_failed(loaded.error()); return;
  }
}

Result<void> Tier::load_small(const EntryPtr& entry, std::uint64_t epoch) {
  TRY_ASSIGN(auto record, records_.get(entry->ref.version));
  if (!record) return fail(ErrorCode::kNotFound, "no record");
  const ObjectRef& ref = entry->ref;
  if (record->ref.size != ref.size || record->ref.etag != ref.etag || record->ref.key != ref.key ||
      record->ref.store_id != ref.store_id) {
    return fail(wrong("the record is of another object"));
  }
  if (record->crcs.size() != block_count(ref.size)) return fail(wrong("the record lacks checksums"));
  TRY_ASSIGN(Files files, open_files(ref));
  TRY_ASSIGN(const std::uint64_t size, files.object->size());
  if (size != ref.size) return fail(wrong("the object file has the wrong length"));
  MutexLock lock(entry->mutex);
  if (entry->epoch != epoch) return fail(ErrorCode::kStale);
  entry->files = std::make_shared<const Files>(std::move(files));
  entry->small_crcs = std::move(record->crcs);
  entry->on_disk = true;
  entry->set(0);
  entry->set_vouched(0, true);
  return {};
}

Result<void> Tier::load_large(const EntryPtr& entry, std::uint64_t epoch) {
  const ObjectRef& ref = entry->ref;
  TRY_ASSIGN(Files files, open_files(ref));
  const SidecarLayout layout(ref.size);
  TRY_ASSIGN(const std::uint64_t sidecar_size, files.sidecar->size());
  if (sidecar_size != layout.total) return fail(wrong("the sidecar has the wrong length"));
  std::vector<std::byte> head(layout.bitmap_offset + layout.bitmap_bytes);
  TRY_ASSIGN(const std::size_t n, files.sidecar->read_at(0, head));
  if (n != head.size()) return fail(wrong("the sidecar is short"));
  TRY_ASSIGN(const ObjectRef found, parse_sidecar_header(head));
  if (found.version != ref.version || found.size != ref.size || found.key != ref.key || found.etag != ref.etag ||
      found.store_id != ref.store_id) {
    return fail(wrong("the sidecar is of another object"));
  }
  TRY_ASSIGN(const std::uint64_t object_size, files.object->size());
  // Cut or grown from outside: the right length back, and the checksums tell which pages suffered.
  if (object_size != ref.size && !files.object->truncate(ref.size)) return fail(wrong("the object file has the wrong length"));
  std::vector<std::uint8_t> bitmap(layout.bitmap_bytes);
  for (std::size_t i = 0; i < bitmap.size(); ++i) bitmap[i] = static_cast<std::uint8_t>(head[layout.bitmap_offset + i]);
  mask_tail(bitmap, entry->pages);

  const bool stray = !space_.find(ref.version);
  std::uint64_t charge = 0;
  if (stray) {
    TRY_ASSIGN(charge, charge_of(files));
  }
  MutexLock lock(entry->mutex);
  if (entry->epoch != epoch) return fail(ErrorCode::kStale);
  entry->files = std::make_shared<const Files>(std::move(files));
  for (std::uint64_t page = 0; page < entry->pages; ++page) {
    if ((bitmap[page / 8] >> (page % 8) & 1) != 0) entry->set(page);
  }
  entry->vouched = std::move(bitmap);
  entry->on_disk = true;
  if (stray) {
    entry->record_stale = true;  // gets its record back when the entry goes
    space_.settle(ref.version, charge, 0);
  }
  return {};
}

Result<void> Tier::adopt(const VersionId& version) {
  TRY_ASSIGN(const auto sidecar, open_existing(sidecar_path(version)));
  std::vector<std::byte> header(kSidecarHeaderBytes);
  TRY_ASSIGN(const std::size_t n, sidecar->read_at(0, header));
  header.resize(n);
  TRY_ASSIGN(const ObjectRef ref, parse_sidecar_header(header));
  if (ref.version != version) return fail(wrong("the sidecar is of another object"));
  const SidecarLayout layout(ref.size);
  TRY_ASSIGN(const std::uint64_t size, sidecar->size());
  if (size != layout.total) return fail(wrong("the sidecar has the wrong length"));
  std::vector<std::byte> bitmap(layout.bitmap_bytes);
  TRY_ASSIGN(const std::size_t bits, sidecar->read_at(layout.bitmap_offset, bitmap));
  if (bits != bitmap.size()) return fail(wrong("the sidecar is short"));
  TRY_ASSIGN(const auto object, open_existing(object_path(version)));
  Record record;
  record.ref = ref;
  record.head.size = ref.size;
  TRY_ASSIGN(record.head.charged, charge_of({object, sidecar}));
  for (std::uint64_t page = 0; page < page_count(ref.size); ++page) {
    if ((std::to_integer<unsigned>(bitmap[page / 8]) >> (page % 8) & 1) != 0) record.head.resident += page_length(ref.size, page);
  }
  space_.settle(version, record.head.charged, 0);
  const auto item = space_.find(version);
  record.head.order = item ? item->order : 0;
  return records_.put(record);
}

Result<std::uint64_t> Tier::resident_bytes(const ObjectRef& ref, bool may_wait) {
  if (!space_.find(ref.version)) return std::uint64_t{0};
  TRY_ASSIGN(const auto record, records_.get(ref.version, may_wait));
  return record ? record->head.resident : 0;
}

Result<FilesPtr> Tier::files(const EntryPtr& entry) {
  std::uint64_t epoch = 0;
  {
    MutexLock lock(entry->mutex);
    if (entry->files) return entry->files;
    if (!entry->on_disk) return fail(ErrorCode::kNotFound, "the object has no files");
    epoch = entry->epoch;
  }
  auto opened = open_files(entry->ref);
  if (!opened) {
    if (opened.error().code() == ErrorCode::kNotFound) drop_damaged(entry->ref, opened.error());
    else device_.read_failed(opened.error());
    return fail(std::move(opened).error());
  }
  auto files = std::make_shared<const Files>(std::move(*opened));
  {
    MutexLock lock(entry->mutex);
    if (entry->epoch != epoch) return fail(ErrorCode::kNotFound, "the object was evicted");
    if (entry->files) return entry->files;
    entry->files = files;
  }
  open_files_.opened(entry);
  return files;
}

void Tier::drop_damaged(const ObjectRef& ref, const Error& why) {
  metrics_.dropped_objects.add();
  std::uint64_t suppressed = 0;
  if (damage_log_.allow(suppressed)) {
    log::warn("cache: dropped '{}' of {}: {} ({} like it not shown); it is fetched again when read", ref.key, ref.store_id,
              why.describe(), suppressed);
  }
  (void)drop(ref.version);
}

}  // namespace thermo::cache
