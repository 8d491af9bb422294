// On-disk forms of the cache: sidecar headers and object records, as a damaged disk may hand them back.

#include <cstring>

#include "base/crc32c.h"
#include "cache/layout.h"
#include "cache/record.h"
#include "cache/sidecar.h"
#include "fuzz/fuzz.h"

namespace thermo::fuzz {
namespace {

bool same(const cache::ObjectRef& a, const cache::ObjectRef& b) {
  return a.version == b.version && a.size == b.size && a.store_id == b.store_id && a.key == b.key && a.etag == b.etag;
}

/// What is read by offset from here on must lie where the layout says, for every size that a header may claim.
void check_layout(std::uint64_t size) {
  const cache::SidecarLayout layout(size);
  FUZZ_CHECK(layout.bitmap_offset == cache::kSidecarHeaderBytes);
  FUZZ_CHECK(layout.bitmap_bytes <= size / cache::kPageBytes / 8 + 1 && layout.bitmap_bytes * 8 * cache::kPageBytes >= size);
  FUZZ_CHECK(layout.crc_offset >= layout.bitmap_offset + layout.bitmap_bytes);
  FUZZ_CHECK(layout.crc_at((size - 1) / cache::kBlockBytes) + 4 == layout.total);
}

void check_header(std::span<const std::byte> bytes) {
  const auto ref = cache::parse_sidecar_header(bytes);
  if (!ref) {
    FUZZ_CHECK(ref.error().code() == ErrorCode::kCorrupt);
    return;
  }
  FUZZ_CHECK(cache::has_sidecar(ref->size));
  check_layout(ref->size);
  const auto written = cache::encode_sidecar_header(*ref);
  FUZZ_CHECK(written && written->size() == cache::kSidecarHeaderBytes);
  const auto again = cache::parse_sidecar_header(std::as_bytes(std::span(*written)));
  FUZZ_CHECK(again && same(*again, *ref));
  // One flipped bit anywhere does not pass.
  auto damaged = *written;
  damaged[ref->size % damaged.size()] ^= 0x10;
  FUZZ_CHECK(!cache::parse_sidecar_header(std::as_bytes(std::span(damaged))));
}

/// The fuzzer does not find a checksum by itself.
void check_with_right_checksum(std::string_view text) {
  if (text.size() < cache::kSidecarHeaderBytes) return;
  std::string header(text.substr(0, cache::kSidecarHeaderBytes));
  const std::size_t at = header.size() - 4;
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(header.data(), at)));
  for (std::size_t i = 0; i < 4; ++i) header[at + i] = static_cast<char>((crc >> (8 * i)) & 0xff);
  check_header(std::as_bytes(std::span(header)));
}

void check_record(std::string_view text) {
  const cache::VersionId version{7, 9};
  const auto record = cache::parse_record(version, text);
  const auto head = cache::parse_record_head(text);
  if (!record) {
    FUZZ_CHECK(record.error().code() == ErrorCode::kCorrupt);
    return;
  }
  FUZZ_CHECK(head && head->size == record->ref.size && head->charged == record->head.charged);
  FUZZ_CHECK(cache::encode_record(*record) == text);
}

}  // namespace
}  // namespace thermo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thermo;
  const auto text = fuzz::text_of(data, size);
  fuzz::check_header(std::as_bytes(std::span(data, size)));
  fuzz::check_with_right_checksum(text);
  fuzz::check_record(text);
  if (const auto version = cache::parse_record_key(text)) FUZZ_CHECK(cache::record_key(*version) == text);
  fuzz::Input input(text);
  const cache::VersionId version{input.number(8), input.number(8)};
  const auto back = cache::parse_record_key(cache::record_key(version));
  FUZZ_CHECK(back && *back == version);
  return 0;
}
