// Reading pages that are present, every block checked against its CRC32C.

#include <array>
#include <cstring>

#include "base/crc32c.h"
#include "cache/sidecar.h"
#include "cache/tier.h"

namespace thermo::cache {
namespace {

// Checksums of this many pages are read at once: 16 KiB, one device read for 16 MiB of a file that is read in order.
constexpr std::uint64_t kCrcPagesAtOnce = 16;

Result<std::size_t> read_some(io::File& file, bool may_wait, std::uint64_t offset, std::span<std::byte> dst) {
  if (may_wait) return file.read_at(offset, dst);
  TRY_ASSIGN(const std::size_t n, file.read_at_nowait(offset, dst));
  // Some of it was in memory. Short at the end of the file looks the same; the waiting read tells them apart.
  if (n < dst.size()) return fail(ErrorCode::kWouldWaitDevice);
  return n;
}

std::uint64_t count_bad(std::span<const std::byte> bytes, std::span<const std::uint32_t> crcs) {
  std::uint64_t bad = 0;
  for (std::size_t i = 0; i < crcs.size(); ++i) {
    const std::size_t at = i * kBlockBytes;
    if (crc32c(bytes.subspan(at, std::min<std::size_t>(kBlockBytes, bytes.size() - at))) != crcs[i]) ++bad;
  }
  return bad;
}

}  // namespace

Tier::View Tier::view(Entry& entry) const {
  View view;
  view.files = entry.files;
  view.epoch = entry.epoch;
  if (!has_sidecar(entry.ref.size) && !entry.small_crcs.empty()) {
    std::memcpy(view.small_crcs, entry.small_crcs.data(), entry.small_crcs.size() * sizeof(std::uint32_t));
  }
  return view;
}

Result<void> Tier::block_crcs(Entry& entry, const View& view, bool may_wait, std::uint64_t page, std::size_t first,
                              std::span<std::uint32_t> out) {
  const ObjectRef& ref = entry.ref;
  if (!has_sidecar(ref.size)) {
    std::memcpy(out.data(), view.small_crcs + first, out.size_bytes());
    return {};
  }
  if (crcs_.find(ref.version, page, first, out)) return {};

  const std::uint64_t group = page / kCrcPagesAtOnce * kCrcPagesAtOnce;
  const std::uint64_t pages = std::min(kCrcPagesAtOnce, entry.pages - group);
  std::uint32_t present = 0;
  {
    // Taken before the read: what was present then has its checksums on disk. A page that comes in between brings its own.
    MutexLock lock(entry.mutex);
    if (entry.epoch != view.epoch) return fail(ErrorCode::kNotFound, "the object was evicted");
    for (std::uint64_t i = 0; i < pages; ++i) present |= entry.has(group + i) ? 1u << i : 0;
  }
  const std::uint64_t first_block = group * kBlocksPerPage;
  const std::uint64_t blocks = std::min(pages * kBlocksPerPage, block_count(ref.size) - first_block);
  alignas(std::uint32_t) std::array<std::byte, kCrcPagesAtOnce * kBlocksPerPage * 4> raw;
  const auto bytes = std::span(raw).first(blocks * 4);
  TRY_ASSIGN(const std::size_t n, read_some(*view.files->sidecar, may_wait, SidecarLayout(ref.size).crc_at(first_block), bytes));
  if (n < bytes.size()) return fail(ErrorCode::kCorrupt, "the sidecar is short");
  std::array<std::uint32_t, kCrcPagesAtOnce * kBlocksPerPage> crcs;
  std::memcpy(crcs.data(), raw.data(), bytes.size());  // little-endian, as every machine this runs on
  for (std::uint64_t i = 0; i < pages; ++i) {
    if ((present >> i & 1) == 0) continue;
    const std::uint64_t count = std::min(kBlocksPerPage, blocks - i * kBlocksPerPage);
    crcs_.put(ref.version, group + i, std::span(crcs).subspan(i * kBlocksPerPage, count));
  }
  const std::uint64_t start = (page - group) * kBlocksPerPage + first;
  if (start + out.size() > blocks) return fail(ErrorCode::kInternal, "checksums past the end of the object");
  std::memcpy(out.data(), crcs.data() + start, out.size_bytes());
  return {};
}

Result<void> Tier::read(Entry& entry, const View& view, bool may_wait, ByteRange range, std::span<std::byte> out,
                        BadBlocks& bad) {
  const std::uint64_t size = entry.ref.size;
  std::array<std::uint32_t, kBlocksPerPage> crcs;
  // One piece that starts on a block: verified where it lies. Others go through `edge`, one block each.
  const auto piece = [&](std::uint64_t offset, std::span<std::byte> dst) -> Result<void> {
    const std::uint64_t page = offset / kPageBytes;
    const std::size_t first = (offset % kPageBytes) / kBlockBytes;
    const auto wanted = std::span(crcs).first((dst.size() + kBlockBytes - 1) / kBlockBytes);
    bad = {page, wanted.size()};
    TRY(block_crcs(entry, view, may_wait, page, first, wanted));
    TRY_ASSIGN(const std::size_t n, read_some(*view.files->object, may_wait, offset, dst));
    if (n < dst.size()) return fail(ErrorCode::kCorrupt, "the object file is short");
    bad.count = count_bad(dst, wanted);
    if (bad.count > 0) return fail(ErrorCode::kCorrupt, "a cached block fails its checksum");
    return {};
  };
  const auto run = [&]() -> Result<void> {
    std::uint64_t pos = range.offset;
    while (pos < range.end()) {
      const std::uint64_t page_end = std::min((pos / kPageBytes + 1) * kPageBytes, range.end());
      const std::uint64_t block = pos / kBlockBytes * kBlockBytes;
      const std::uint64_t block_end = std::min(block + kBlockBytes, size);
      std::uint64_t whole_end = page_end == size ? size : page_end / kBlockBytes * kBlockBytes;
      if (pos != block || whole_end <= pos) {
        alignas(64) std::array<std::byte, kBlockBytes> edge;
        TRY(piece(block, std::span(edge).first(block_end - block)));
        whole_end = std::min(block_end, range.end());
        std::memcpy(out.data() + (pos - range.offset), edge.data() + (pos - block), whole_end - pos);
      } else {
        TRY(piece(pos, out.subspan(pos - range.offset, whole_end - pos)));
      }
      pos = whole_end;
    }
    return {};
  };
  auto result = run();
  if (result || result.error().code() == ErrorCode::kWouldWaitDevice || result.error().code() == ErrorCode::kNotFound)
    return result;
  if (result.error().code() != ErrorCode::kCorrupt) device_.read_failed(result.error());
  page_bad(entry, view.epoch, bad);
  return fail(Error(ErrorCode::kCorrupt, std::string(result.error().message())));
}

void Tier::page_bad(Entry& entry, std::uint64_t epoch, const BadBlocks& bad) {
  crcs_.erase(entry.ref.version, bad.page);
  {
    MutexLock lock(entry.mutex);
    // Whoever comes second finds it marked: one bad block is counted once.
    if (entry.epoch != epoch || !entry.has(bad.page)) return;
    entry.clear(bad.page);
    entry.healing[bad.page] += bad.count;
    entry.record_stale = true;
  }
  metrics_.corrupt_blocks.add(bad.count);
  std::uint64_t suppressed = 0;
  if (damage_log_.allow(suppressed)) {
    log::warn("cache: {} damaged blocks in page {} of '{}' ({} like it not shown); fetched again from {}", bad.count, bad.page,
              entry.ref.key, suppressed, entry.ref.store_id);
  }
}

}  // namespace thermo::cache
