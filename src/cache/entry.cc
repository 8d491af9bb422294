#include "cache/entry.h"

#include <algorithm>

namespace thermo::cache {

void Entry::set(std::uint64_t page) {
  if (has(page)) return;
  bitmap[page / 8] = static_cast<std::uint8_t>(bitmap[page / 8] | (1u << (page % 8)));
  resident_bytes += page_length(ref.size, page);
}

void Entry::clear(std::uint64_t page) {
  if (!has(page)) return;
  bitmap[page / 8] = static_cast<std::uint8_t>(bitmap[page / 8] & ~(1u << (page % 8)));
  resident_bytes -= page_length(ref.size, page);
}

void Entry::forget() {
  ++epoch;
  std::fill(bitmap.begin(), bitmap.end(), std::uint8_t{0});
  resident_bytes = 0;
  on_disk = false;
  record_open = false;
  files.reset();
  small_crcs.clear();
  healing.clear();
}

void Entry::wait_loaded() {
  MutexLock lock(mutex);
  while (!ready) loaded.wait(mutex);
}

void Entry::mark_loaded() {
  MutexLock lock(mutex);
  ready = true;
  loaded.notify_all();
}

}  // namespace thermo::cache
