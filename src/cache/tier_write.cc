// Admission, and how a complete page reaches the disk: data, then checksums, then memory says that it is present; its bit, which
// the next process reads, when the transfer that brought it has ended well. Nothing is synced: a block that a crash swallowed
// fails its checksum and is fetched again.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/crc32c.h"
#include "cache/sidecar.h"
#include "cache/tier.h"

namespace thermo::cache {
namespace {

// Evicted at once when the file system is full although the limit is not reached.
constexpr std::uint64_t kNoSpaceEviction = 2 * kPageBytes;

/// Says something about this object, not about the device: its name or its length is beyond what fits.
bool is_of_object(const Error& error) { return error.code() == ErrorCode::kNameTooLong || error.sys_errno() == EFBIG; }

}  // namespace

bool Tier::make_room(std::uint64_t bytes) {
  // Each round frees something or waits for somebody who does; others may take what was freed.
  for (int round = 0; round < 64; ++round) {
    if (space_.reserve(bytes)) return true;
    if (bytes > space_.limit()) return false;
    const auto victims = space_.take_victims(bytes);
    if (victims.empty() && !space_.wait_for_eviction()) return false;
    evict(victims);
    if (!device_.may_write()) return false;
  }
  return false;
}

bool Tier::admit(Entry& entry, std::uint64_t bytes, std::uint64_t& epoch) {
  if (!device_.may_write() || !charges_known_.load(std::memory_order_relaxed)) return false;
  if (has_sidecar(entry.ref.size) && !fits_sidecar(entry.ref)) return false;
  space_.pin(entry.ref.version);
  if (make_room(bytes)) {
    MutexLock lock(entry.mutex);
    epoch = entry.epoch;
    if (!entry.evicting) return true;
    space_.release(bytes);
  }
  space_.unpin(entry.ref.version);
  return false;
}

Result<std::uint64_t> Tier::charge_of(const Files& files) {
  TRY_ASSIGN(std::uint64_t charge, files.object->allocated());
  if (files.sidecar) {
    TRY_ASSIGN(const std::uint64_t sidecar, files.sidecar->allocated());
    charge += sidecar;
  }
  return charge;
}

Result<std::shared_ptr<io::File>> Tier::create_file(const VersionId& version, const std::string& path) {
  auto file = open_file(path, io::OpenMode::kCreate);
  if (file || file.error().code() != ErrorCode::kNotFound) return file;
  TRY(make_bucket(version));
  return open_file(path, io::OpenMode::kCreate);
}

Result<FilesPtr> Tier::create_files(const EntryPtr& entry, std::uint64_t epoch) {
  const ObjectRef& ref = entry->ref;
  Files files;
  std::optional<std::string> header;
  if (has_sidecar(ref.size)) {
    header = encode_sidecar_header(ref);
    if (!header) return fail(ErrorCode::kNameTooLong, "the object's names do not fit into a sidecar");
    // Left-overs of an earlier life go first, the sidecar before the data: it must never vouch for bytes it does not know.
    TRY_ASSIGN(files.sidecar, create_file(ref.version, sidecar_path(ref.version)));
    TRY(files.sidecar->truncate(0));
  }
  TRY_ASSIGN(files.object, create_file(ref.version, object_path(ref.version)));
  TRY(files.object->truncate(0));
  TRY(files.object->truncate(ref.size));
  if (files.sidecar) {
    TRY(files.sidecar->write_at(0, std::as_bytes(std::span(header->data(), header->size()))));
    TRY(files.sidecar->truncate(SidecarLayout(ref.size).total));
  }
  auto shared = std::make_shared<const Files>(std::move(files));
  bool stale = false;
  {
    MutexLock lock(entry->mutex);
    stale = entry->epoch != epoch;
    if (!stale) {
      entry->files = shared;
      entry->on_disk = true;
    }
  }
  if (stale) {
    // Made while eviction was unlinking. Nobody has made newer ones: writes of one object come one at a time, and this is one.
    (void)remove_files(ref.version);
    return fail(ErrorCode::kStale, "evicted meanwhile");
  }
  open_files_.opened(entry);
  return shared;
}

Result<FilesPtr> Tier::files_to_write(const EntryPtr& entry, std::uint64_t epoch) {
  bool on_disk = false;
  {
    MutexLock lock(entry->mutex);
    if (entry->epoch != epoch) return fail(ErrorCode::kStale, "evicted meanwhile");
    if (entry->files) return entry->files;
    on_disk = entry->on_disk;
  }
  return on_disk ? files(entry) : create_files(entry, epoch);
}

Result<void> Tier::write_bitmap(Entry& entry, const Files& files, std::uint64_t first_page, std::uint64_t last_page) {
  const std::uint64_t first = first_page / 8;
  std::vector<std::byte> bits(last_page / 8 - first + 1);
  {
    MutexLock lock(entry.mutex);
    if (entry.vouched.size() < first + bits.size()) return fail(ErrorCode::kStale, "evicted meanwhile");
    std::memcpy(bits.data(), entry.vouched.data() + first, bits.size());
  }
  return files.sidecar->write_at(SidecarLayout(entry.ref.size).bitmap_offset + first, bits);
}

Result<std::uint64_t> Tier::write_to_disk(const EntryPtr& entry, std::uint64_t page, std::span<const std::byte> bytes,
                                          std::span<const std::uint32_t> crcs, std::uint64_t epoch) {
  TRY_ASSIGN(const FilesPtr files, files_to_write(entry, epoch));
  bool vouched = false;
  {
    MutexLock lock(entry->mutex);
    if (entry->epoch != epoch) return fail(ErrorCode::kStale, "evicted meanwhile");
    vouched = files->sidecar && entry->is_vouched(page);
    if (vouched) entry->set_vouched(page, false);
  }
  // The page is written anew because it was found damaged. Until the transfer has ended well nothing may vouch for it.
  if (vouched) TRY(write_bitmap(*entry, *files, page, page));
  TRY(files->object->write_at(page * kPageBytes, bytes));
  if (files->sidecar)
    TRY(files->sidecar->write_at(SidecarLayout(entry->ref.size).crc_at(page * kBlocksPerPage), std::as_bytes(crcs)));
  return charge_of(*files);
}

void Tier::write_failed(const EntryPtr& entry, const Error& error, std::uint64_t epoch, std::uint64_t reserved) {
  FilesPtr files;
  bool stale = false;
  bool made = false;
  {
    MutexLock lock(entry->mutex);
    stale = entry->epoch != epoch;
    made = entry->on_disk;
    files = entry->files;
  }
  // Files that are there belong to a newer life of the object, whose pages may have come before this one.
  if (stale) {
    space_.release(reserved);
    return;
  }
  if (!is_of_object(error)) device_.write_failed(error);
  if (!made) {
    if (remove_files(entry->ref.version)) (void)space_.remove(entry->ref.version);  // half-made
    space_.release(reserved);
    return;
  }
  // Part of the page may be there and is paid for.
  const auto charge = files ? charge_of(*files) : Result<std::uint64_t>(fail(ErrorCode::kNotFound));
  MutexLock lock(entry->mutex);
  if (!charge || entry->epoch != epoch) {
    space_.release(reserved);
    return;
  }
  entry->record_stale = true;
  space_.settle(entry->ref.version, *charge, reserved);
}

Result<void> Tier::write_page(const EntryPtr& entry, std::uint64_t page, std::span<const std::byte> bytes, Transfer transfer,
                              std::uint64_t reserved) {
  std::array<std::uint32_t, kBlocksPerPage> all;
  const auto crcs = std::span(all).first((bytes.size() + kBlockBytes - 1) / kBlockBytes);
  for (std::size_t i = 0; i < crcs.size(); ++i) {
    const std::size_t at = i * kBlockBytes;
    crcs[i] = crc32c(bytes.subspan(at, std::min<std::size_t>(kBlockBytes, bytes.size() - at)));
  }
  auto written = write_to_disk(entry, page, bytes, crcs, transfer.epoch);
  if (!written && written.error().code() == ErrorCode::kNoSpace) {
    // The file system is smaller than the limit says: make room there once, then try again.
    const auto victims = space_.take_victims(space_.limit() - std::min(space_.limit(), space_.used()) + kNoSpaceEviction);
    evict(victims);
    if (!victims.empty()) written = write_to_disk(entry, page, bytes, crcs, transfer.epoch);
  }
  if (!written) {
    write_failed(entry, written.error(), transfer.epoch, reserved);
    return fail(std::move(written).error());
  }

  const bool large = has_sidecar(entry->ref.size);
  if (large) crcs_.put(entry->ref.version, page, crcs);
  bool stale = false;
  bool first = false;
  std::uint64_t healed = 0;
  {
    MutexLock lock(entry->mutex);
    stale = entry->epoch != transfer.epoch;
    if (!stale) {
      if (!large) entry->small_crcs.assign(crcs.begin(), crcs.end());
      entry->set(page);
      entry->unvouched[page] = transfer.id;
      first = large && !entry->record_open;
      entry->record_open |= large;
      const auto it = entry->healing.find(page);
      if (it != entry->healing.end()) {
        healed = it->second;
        entry->healing.erase(it);
      }
      space_.settle(entry->ref.version, *written, reserved);
    }
  }
  if (stale) {
    space_.release(reserved);
    return fail(ErrorCode::kStale, "evicted meanwhile");
  }
  metrics_.healed_blocks.add(healed);
  // Marks the object as being filled: after a crash its charge is looked up again.
  if (first) put_record(*entry, RecordState::kOpen);
  return {};
}

void Tier::vouch(const EntryPtr& entry, Transfer transfer) {
  std::vector<std::uint64_t> pages;
  {
    MutexLock lock(entry->mutex);
    if (entry->epoch != transfer.epoch) return;
    for (auto it = entry->unvouched.begin(); it != entry->unvouched.end();) {
      if (it->second != transfer.id) {
        ++it;
        continue;
      }
      pages.push_back(it->first);
      entry->set_vouched(it->first, true);
      it = entry->unvouched.erase(it);
    }
  }
  if (pages.empty()) return;
  if (!has_sidecar(entry->ref.size)) {
    put_record(*entry, RecordState::kSettled);
    return;
  }
  const auto [first, last] = std::minmax_element(pages.begin(), pages.end());
  const auto written = [&]() -> Result<void> {
    TRY_ASSIGN(const FilesPtr files, files_to_write(entry, transfer.epoch));
    return write_bitmap(*entry, *files, *first, *last);
  }();
  if (written) return;
  {
    MutexLock lock(entry->mutex);
    if (entry->epoch != transfer.epoch) return;
    for (const auto page : pages) entry->set_vouched(page, false);
  }
  device_.write_failed(written.error());
}

void Tier::revoke(Entry& entry, Transfer transfer) {
  std::vector<std::uint64_t> pages;
  {
    MutexLock lock(entry.mutex);
    if (entry.epoch != transfer.epoch) return;
    for (const auto& [page, id] : entry.unvouched) {
      if (id == transfer.id) pages.push_back(page);
    }
    for (const auto page : pages) entry.clear(page);
  }
  for (const auto page : pages) crcs_.erase(entry.ref.version, page);
}

void Tier::put_record(Entry& entry, RecordState state) {
  const ObjectRef& ref = entry.ref;
  Record record;
  record.ref = ref;
  record.head.state = state;
  record.head.size = ref.size;
  const auto item = space_.find(ref.version);
  record.head.order = item ? item->order : 0;
  record.head.charged = item ? item->bytes : 0;
  std::uint64_t epoch = 0;
  {
    MutexLock lock(entry.mutex);
    if (!entry.on_disk) return;
    // The checksums of a small object vouch for it: they are of no use while its page is not to be believed.
    if (!has_sidecar(ref.size) && !(entry.has(0) && entry.is_vouched(0))) return;
    epoch = entry.epoch;
    record.head.resident = entry.resident_bytes;
    record.crcs = entry.small_crcs;
  }
  const auto put = records_.put(record);
  if (!put) {
    device_.write_failed(put.error());
    std::uint64_t suppressed = 0;
    if (record_log_.allow(suppressed)) log::warn("cache: {} ({} like it not shown)", put.error().describe(), suppressed);
    return;
  }
  bool stale = false;
  {
    MutexLock lock(entry.mutex);
    stale = entry.epoch != epoch;
  }
  // Evicted meanwhile: that record is of files which are no more.
  if (stale) (void)records_.remove(ref.version);
}

void Tier::settle_record(Entry& entry) {
  FilesPtr files;
  {
    MutexLock lock(entry.mutex);
    if (!entry.record_due() || !entry.on_disk) return;
    entry.record_open = entry.record_stale = false;
    files = entry.files;
  }
  // File systems that allocate late have added their own blocks since the last page was written.
  if (const auto charge = files ? charge_of(*files) : Result<std::uint64_t>(fail(ErrorCode::kNotFound)); charge) {
    MutexLock lock(entry.mutex);
    if (entry.on_disk && space_.find(entry.ref.version)) space_.settle(entry.ref.version, *charge, 0);
  }
  put_record(entry, RecordState::kSettled);
}

}  // namespace thermo::cache
