// What the catalog's database holds, as a damaged one may hand it back; and the algebra of keys, prefixes and names. First byte:
// which.

#include "catalog/key_layout.h"
#include "catalog/records.h"
#include "fuzz/fuzz.h"

namespace thermo::fuzz {
namespace {

template <class T>
void check_record(Result<T> (*decode)(std::string_view), std::string_view bytes) {
  const auto record = decode(bytes);
  if (!record) {
    FUZZ_CHECK(record.error().code() == ErrorCode::kCorrupt);
    return;
  }
  const auto written = catalog::encode(*record);
  FUZZ_CHECK(written.size() == bytes.size());
  const auto again = decode(written);
  FUZZ_CHECK(again && catalog::encode(*again) == written);
}

void check_names(std::string_view key, std::string_view other) {
  const auto prefix = catalog::parent_prefix(key);
  const auto name = catalog::base_name(key);
  FUZZ_CHECK(key.starts_with(prefix) && (prefix.empty() || prefix.ends_with('/')));
  FUZZ_CHECK(std::string(prefix) + std::string(name) == key || std::string(prefix) + std::string(name) + "/" == key);

  // [p, prefix_end(p)) holds what begins with p and nothing else.
  const auto end = catalog::prefix_end(key);
  const std::string inside = std::string(key) + std::string(other);
  FUZZ_CHECK(end.empty() || inside < end);
  FUZZ_CHECK((other >= key && (end.empty() || other < end)) == other.starts_with(key) || end.empty());

  const std::size_t listed = prefix.size();
  const auto parsed = catalog::parse_key(key, listed);
  FUZZ_CHECK(parsed.folders_end >= listed && parsed.folders_end <= key.size());
  for (std::size_t begin = listed; begin < parsed.folders_end;) {
    const auto slash = key.find('/', begin);
    FUZZ_CHECK(slash != std::string_view::npos && slash < parsed.folders_end);
    FUZZ_CHECK(catalog::valid_name(key.substr(begin, slash - begin)));
    begin = slash + 1;
  }
  if (parsed.shape == catalog::KeyShape::kFile) FUZZ_CHECK(catalog::valid_name(key.substr(parsed.folders_end)));
  if (parsed.shape == catalog::KeyShape::kMarker) FUZZ_CHECK(parsed.folders_end == key.size());

  const auto whole = catalog::parse_key(key, 0);
  if (whole.shape != catalog::KeyShape::kHidden && !key.empty()) FUZZ_CHECK(catalog::valid_name(name));
  // Database keys sort as the store's keys do.
  FUZZ_CHECK((catalog::file_key(3, key) < catalog::file_key(3, other)) == (key < other));
  FUZZ_CHECK(catalog::file_key(3, key) < catalog::file_key(4, other));
}

}  // namespace
}  // namespace thermo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thermo;
  fuzz::Input input(fuzz::text_of(data, size));
  const auto which = input.byte();
  const auto rest = input.rest();
  switch (which % 5) {
    case 0: fuzz::check_record(catalog::decode_file, rest); break;
    case 1: fuzz::check_record(catalog::decode_folder, rest); break;
    case 2: fuzz::check_record(catalog::decode_owner, rest); break;
    case 3: fuzz::check_record(catalog::decode_mark, rest); break;
    default: {
      const auto key = input.until('\n');
      fuzz::check_names(key, input.rest());
    }
  }
  return 0;
}
