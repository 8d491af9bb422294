#include "cache/sidecar.h"

#include "base/crc32c.h"
#include "cache/bytes.h"
#include "cache/layout.h"

namespace thermo::cache {
namespace {

constexpr std::uint64_t kMagic = 0x314d55534d524854;  // "THRMSUM1"
constexpr std::size_t kChecksumOffset = kSidecarHeaderBytes - 4;

std::uint32_t header_crc(std::string_view header) { return crc32c(std::as_bytes(std::span(header.data(), kChecksumOffset))); }

}  // namespace

SidecarLayout::SidecarLayout(std::uint64_t size)
    : bitmap_offset(kSidecarHeaderBytes),
      bitmap_bytes((page_count(size) + 7) / 8),
      crc_offset(bitmap_offset + round_up(bitmap_bytes, 64)),
      total(crc_offset + 4 * block_count(size)) {}

bool fits_sidecar(const ObjectRef& ref) {
  constexpr std::size_t kFixed = 8 + 3 * 4 + 3 * 8 + 3 * 4;
  return kFixed + ref.store_id.size() + ref.key.size() + ref.etag.size() <= kChecksumOffset;
}

std::optional<std::string> encode_sidecar_header(const ObjectRef& ref) {
  if (!fits_sidecar(ref)) return std::nullopt;
  FieldWriter out;
  out.number(kMagic);
  out.number(kFormatVersion);
  out.number(static_cast<std::uint32_t>(kPageBytes));
  out.number(static_cast<std::uint32_t>(kBlockBytes));
  out.number(ref.size);
  out.number(ref.version.high);
  out.number(ref.version.low);
  out.text(ref.store_id);
  out.text(ref.key);
  out.text(ref.etag);
  out.str().resize(kChecksumOffset, '\0');
  out.number(header_crc(out.str()));
  return std::move(out.str());
}

Result<ObjectRef> parse_sidecar_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kSidecarHeaderBytes) return fail(ErrorCode::kCorrupt, "sidecar is shorter than its header");
  const auto header = bytes.first(kSidecarHeaderBytes);
  FieldReader in(header);
  if (in.number<std::uint64_t>() != kMagic) return fail(ErrorCode::kCorrupt, "sidecar has no magic");
  FieldReader checksum(header.subspan(kChecksumOffset));
  if (checksum.number<std::uint32_t>() != crc32c(header.first(kChecksumOffset))) {
    return fail(ErrorCode::kCorrupt, "sidecar header fails its checksum");
  }
  if (in.number<std::uint32_t>() != kFormatVersion) return fail(ErrorCode::kCorrupt, "sidecar has another format version");
  if (in.number<std::uint32_t>() != kPageBytes || in.number<std::uint32_t>() != kBlockBytes) {
    return fail(ErrorCode::kCorrupt, "sidecar has another page or block size");
  }
  ObjectRef ref;
  ref.size = in.number<std::uint64_t>();
  ref.version.high = in.number<std::uint64_t>();
  ref.version.low = in.number<std::uint64_t>();
  ref.store_id = in.text();
  ref.key = in.text();
  ref.etag = in.text();
  if (!in.good() || in.at() > kChecksumOffset) return fail(ErrorCode::kCorrupt, "sidecar header is malformed");
  if (!has_sidecar(ref.size)) return fail(ErrorCode::kCorrupt, "sidecar of an object too small to have one");
  if (ref.size > kLargestObjectBytes) return fail(ErrorCode::kCorrupt, "sidecar of an object larger than any");
  return ref;
}

}  // namespace thermo::cache
