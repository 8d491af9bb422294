// Admission, and how a complete page reaches the disk: data, then checksums, then its bit, then memory says that it is present. Nothing
// is synced: a block that a crash swallowed fails its checksum and is fetched again.

#include <array>

#include "base/crc32c.h"
#include "cache/sidecar.h"
#include "cache/tier.h"

namespace thermo::cache {
namespace {

// Evicted at once when the file system is full although the limit is not reached.
constexpr std::uint64_t kNoSpaceEviction = 2 * kPageBytes;

}  // namespace

bool Tier::make_room(std::uint64_t bytes) {
  // Each round frees something or waits for somebody who does; others may take what was freed.
  for (int round = 0; round < 64; ++round) {
    if (space_.reserve(bytes)) return true;
    if (bytes > space_.limit()) return false;
    const auto victims = space_.take_victims(bytes);
    if (victims.empty() && !space_.wait_for_eviction()) return false;
    for (const auto& victim : victims) {
      if (drop(victim.id)) {
        metrics_.evictions.add();
        metrics_.evicted_bytes.add(victim.charge);
      } else {
        space_.settle(victim.id, victim.charge, 0);  // still there, still paid for
      }
      space_.evicted(victim.charge);
    }
    if (!device_.may_write()) return false;
  }
  return false;
}

bool Tier::admit(Entry& entry, std::uint64_t bytes, std::uint64_t& epoch) {
  if (!device_.may_write() || !charges_known_.load(std::memory_order_relaxed)) return false;
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

Result<FilesPtr> Tier::create_files(const EntryPtr& entry, std::uint64_t epoch) {
  const ObjectRef& ref = entry->ref;
  Files files;
  std::optional<std::string> header;
  if (has_sidecar(ref.size)) {
    header = encode_sidecar_header(ref);
    if (!header) return fail(ErrorCode::kNameTooLong, "the object's names do not fit into a sidecar");
    // Left-overs of an earlier life go first, the sidecar before the data: it must never vouch for bytes it does not know.
    TRY_ASSIGN(files.sidecar, disk_->open(sidecar_path(ref.version), io::OpenMode::kCreate));
    TRY(files.sidecar->truncate(0));
  }
  TRY_ASSIGN(files.object, disk_->open(object_path(ref.version), io::OpenMode::kCreate));
  TRY(files.object->truncate(0));
  TRY(files.object->truncate(ref.size));
  if (files.sidecar) {
    TRY(files.sidecar->write_at(0, std::as_bytes(std::span(header->data(), header->size()))));
    TRY(files.sidecar->truncate(SidecarLayout(ref.size).total));
  }
  auto shared = std::make_shared<const Files>(std::move(files));
  {
    MutexLock lock(entry->mutex);
    if (entry->epoch != epoch) return fail(ErrorCode::kStale, "evicted meanwhile");
    entry->files = shared;
    entry->on_disk = true;
  }
  open_files_.opened(entry);
  return shared;
}

Result<std::uint64_t> Tier::write_to_disk(const EntryPtr& entry, std::uint64_t page, std::span<const std::byte> bytes,
                                          std::span<const std::uint32_t> crcs, std::uint64_t epoch) {
  FilesPtr files;
  bool on_disk = false;
  bool first = false;
  std::uint8_t bits = 0;
  {
    MutexLock lock(entry->mutex);
    if (entry->epoch != epoch) return fail(ErrorCode::kStale, "evicted meanwhile");
    files = entry->files;
    on_disk = entry->on_disk;
    first = !entry->record_open;
    bits = static_cast<std::uint8_t>(entry->bitmap[page / 8] | (1u << (page % 8)));
  }
  if (!files) {
    if (on_disk) {
      TRY_ASSIGN(files, this->files(entry));
    } else {
      TRY_ASSIGN(files, create_files(entry, epoch));
    }
  }
  TRY(files->object->write_at(page * kPageBytes, bytes));
  std::uint64_t charge = 0;
  if (files->sidecar) {
    const SidecarLayout layout(entry->ref.size);
    TRY(files->sidecar->write_at(layout.crc_at(page * kBlocksPerPage), std::as_bytes(crcs)));
    TRY(files->sidecar->write_at(layout.bitmap_offset + page / 8, std::as_bytes(std::span(&bits, 1))));
    TRY_ASSIGN(charge, files->sidecar->allocated());
    if (first) {
      // Marks the object as being filled: after a crash its charge is looked up again.
      put_record(*entry, RecordState::kOpen);
      MutexLock lock(entry->mutex);
      entry->record_open = true;
    }
  }
  TRY_ASSIGN(const std::uint64_t object_charge, files->object->allocated());
  return charge + object_charge;
}

Result<void> Tier::write_page(const EntryPtr& entry, std::uint64_t page, std::span<const std::byte> bytes, std::uint64_t epoch,
                              std::uint64_t reserved) {
  std::array<std::uint32_t, kBlocksPerPage> all;
  const auto crcs = std::span(all).first((bytes.size() + kBlockBytes - 1) / kBlockBytes);
  for (std::size_t i = 0; i < crcs.size(); ++i) {
    const std::size_t at = i * kBlockBytes;
    crcs[i] = crc32c(bytes.subspan(at, std::min<std::size_t>(kBlockBytes, bytes.size() - at)));
  }
  auto written = write_to_disk(entry, page, bytes, crcs, epoch);
  if (!written && written.error().code() == ErrorCode::kNoSpace) {
    // The file system is smaller than the limit says: make room there once, then try again.
    const auto victims = space_.take_victims(space_.limit() - std::min(space_.limit(), space_.used()) + kNoSpaceEviction);
    for (const auto& victim : victims) {
      if (drop(victim.id)) {
        metrics_.evictions.add();
        metrics_.evicted_bytes.add(victim.charge);
      }
      space_.evicted(victim.charge);
    }
    if (!victims.empty()) written = write_to_disk(entry, page, bytes, crcs, epoch);
  }
  if (!written) {
    space_.release(reserved);
    const ErrorCode code = written.error().code();
    if (code == ErrorCode::kStale) {
      // The files may have been made after eviction unlinked them. Writes of one object come one at a time: no newer ones exist yet.
      (void)remove_files(entry->ref.version);
    } else if (code != ErrorCode::kNameTooLong) {
      device_.write_failed(written.error());
    }
    return fail(std::move(written).error());
  }

  if (has_sidecar(entry->ref.size)) crcs_.put(entry->ref.version, page, crcs);
  bool stale = false;
  std::uint64_t healed = 0;
  {
    MutexLock lock(entry->mutex);
    stale = entry->epoch != epoch;
    if (!stale) {
      if (!has_sidecar(entry->ref.size)) entry->small_crcs.assign(crcs.begin(), crcs.end());
      entry->set(page);
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
    (void)remove_files(entry->ref.version);
    return fail(ErrorCode::kStale, "evicted meanwhile");
  }
  metrics_.healed_blocks.add(healed);
  if (!has_sidecar(entry->ref.size)) put_record(*entry, RecordState::kSettled);
  return {};
}

void Tier::revoke(Entry& entry, std::uint64_t page, std::uint64_t epoch) {
  crcs_.erase(entry.ref.version, page);
  MutexLock lock(entry.mutex);
  if (entry.epoch == epoch) entry.clear(page);
}

void Tier::put_record(Entry& entry, RecordState state) {
  Record record;
  record.ref = entry.ref;
  record.head.state = state;
  record.head.size = entry.ref.size;
  const auto item = space_.find(entry.ref.version);
  record.head.order = item ? item->order : 0;
  record.head.charged = item ? item->bytes : 0;
  {
    MutexLock lock(entry.mutex);
    if (!entry.on_disk) return;
    record.head.resident = entry.resident_bytes;
    record.crcs = entry.small_crcs;
  }
  const auto put = records_.put(record);
  if (put) return;
  device_.write_failed(put.error());
  std::uint64_t suppressed = 0;
  if (record_log_.allow(suppressed)) log::warn("cache: {} ({} like it not shown)", put.error().describe(), suppressed);
}

void Tier::settle_record(Entry& entry) {
  {
    MutexLock lock(entry.mutex);
    if (!entry.record_open || !entry.on_disk) return;
    entry.record_open = false;
  }
  put_record(entry, RecordState::kSettled);
}

}  // namespace thermo::cache
