#include "cache/record.h"

#include "cache/bytes.h"
#include "cache/layout.h"

namespace thermo::cache {
namespace {

constexpr std::uint8_t kRecordVersion = 1;

Result<RecordHead> read_head(FieldReader& in) {
  const auto version = in.number<std::uint8_t>();
  RecordHead head;
  const auto state = in.number<std::uint8_t>();
  head.order = in.number<std::uint64_t>();
  head.charged = in.number<std::uint64_t>();
  head.resident = in.number<std::uint64_t>();
  head.size = in.number<std::uint64_t>();
  if (!in.good() || version != kRecordVersion || state > 1) return fail(ErrorCode::kCorrupt, "malformed object record");
  head.state = static_cast<RecordState>(state);
  return head;
}

}  // namespace

std::string record_key(const VersionId& version) {
  std::string key = "o";
  for (const std::uint64_t half : {version.high, version.low}) {
    for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>((half >> shift) & 0xff));
  }
  return key;
}

Result<VersionId> parse_record_key(std::string_view key) {
  if (key.size() != 17 || key[0] != 'o') return fail(ErrorCode::kCorrupt, "malformed key of an object record");
  VersionId version;
  for (std::size_t i = 0; i < 16; ++i) {
    auto& half = i < 8 ? version.high : version.low;
    half = (half << 8) | static_cast<unsigned char>(key[i + 1]);
  }
  return version;
}

std::string encode_record(const Record& record) {
  FieldWriter out;
  out.number(kRecordVersion);
  out.number(static_cast<std::uint8_t>(record.head.state));
  out.number(record.head.order);
  out.number(record.head.charged);
  out.number(record.head.resident);
  out.number(record.head.size);
  out.text(record.ref.store_id);
  out.text(record.ref.key);
  out.text(record.ref.etag);
  out.number(static_cast<std::uint32_t>(record.crcs.size()));
  for (const auto crc : record.crcs) out.number(crc);
  return std::move(out.str());
}

Result<RecordHead> parse_record_head(std::string_view value) {
  FieldReader in(value);
  return read_head(in);
}

Result<Record> parse_record(const VersionId& version, std::string_view value) {
  FieldReader in(value);
  Record record;
  TRY_ASSIGN(record.head, read_head(in));
  record.ref.version = version;
  record.ref.size = record.head.size;
  record.ref.store_id = in.text();
  record.ref.key = in.text();
  record.ref.etag = in.text();
  const auto count = in.number<std::uint32_t>();
  // The count is checked before memory is taken for it: a damaged one must not ask for gigabytes.
  const bool fits = in.good() && count <= kSmallObjectBytes / kBlockBytes && in.left() == std::size_t{count} * 4;
  if (!fits) return fail(ErrorCode::kCorrupt, "malformed object record");
  for (std::uint32_t i = 0; i < count; ++i) record.crcs.push_back(in.number<std::uint32_t>());
  return record;
}

}  // namespace thermo::cache
