#include "cache/entry.h"

#include <algorithm>

namespace thermo::cache {

void Entry::set(std::uint64_t page) {
  if (has(page)) return;
  bitmap.resize((pages + 7) / 8);
  bitmap[page / 8] = static_cast<std::uint8_t>(bitmap[page / 8] | (1u << (page % 8)));
  resident_bytes += page_length(ref.size, page);
}

void Entry::clear(std::uint64_t page) {
  unvouched.erase(page);
  if (!has(page)) return;
  bitmap[page / 8] = static_cast<std::uint8_t>(bitmap[page / 8] & ~(1u << (page % 8)));
  resident_bytes -= page_length(ref.size, page);
}

void Entry::forget() {
  ++epoch;
  bitmap.clear();
  vouched.clear();
  unvouched.clear();
  resident_bytes = 0;
  on_disk = false;
  record_open = false;
  record_stale = false;
  files.reset();
  small_crcs.clear();
  healing.clear();
}

void Entry::set_vouched(std::uint64_t page, bool value) {
  vouched.resize((pages + 7) / 8);
  const auto mask = static_cast<std::uint8_t>(1u << (page % 8));
  vouched[page / 8] = static_cast<std::uint8_t>(value ? vouched[page / 8] | mask : vouched[page / 8] & ~mask);
}

}  // namespace thermo::cache
