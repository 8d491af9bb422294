#include "read/prefetch_window.h"

#include <algorithm>

namespace thermo::read {
namespace {

using cache::ByteRange;
using cache::kMaxFillBytes;
using cache::kPageBytes;

// Growth at a stall: twice at the first one, four times from then on, but never more than so many times what the stream has
// already read. Measured choice: with requests of the kernel's read-ahead (256 KiB, 512 KiB, then 1 MiB), 25 ms to the first byte
// and 90 MB/s per connection, 16 GETs of 8 MiB are in flight after about 2.5 round trips; with doubling alone it is 4. A reader
// that starts at the front of a file it touched nowhere else is most likely copying it; one that starts inside it reads a column
// chunk and stops soon, so it has to prove more.
constexpr std::uint64_t kFirstGrowth = 2;
constexpr std::uint64_t kGrowth = 4;
constexpr std::uint64_t kGrowthPerReadFront = 32;
constexpr std::uint64_t kGrowthPerReadInside = 4;

// Requests of one kernel read-ahead may overtake each other: two of 1 MiB are in flight per file.
constexpr std::uint64_t kReorder = 2u << 20;

// A first read inside a file asks ahead only from this size on: header probes and lookups in an index are smaller and touch one
// page.
constexpr std::uint64_t kStreamingRead = 64u << 10;

// So many reads in order earn a window that a short seek keeps.
constexpr std::uint32_t kEarned = 4;

// Density is measured over about this much of the past.
constexpr std::uint64_t kDensitySpan = 64u << 20;

std::uint64_t align_down(std::uint64_t n, std::uint64_t unit) { return n / unit * unit; }
std::uint64_t align_up(std::uint64_t n, std::uint64_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

ByteRange PrefetchWindow::on_read(ByteRange read, bool stalled, std::uint64_t available) {
  if (read.offset >= size_ || read.length == 0) return {};
  read.length = std::min(read.length, size_ - read.offset);
  ++reads_;
  const std::size_t index = find(read.offset);
  if (index == kStreams) return start_stream(read, available);
  last_ = index;
  streams_[index].last_used = reads_;
  return continue_stream(streams_[index], read, stalled, available);
}

std::size_t PrefetchWindow::find(std::uint64_t offset) const {
  std::size_t best = kStreams;
  std::uint64_t best_distance = UINT64_MAX;
  for (std::size_t i = 0; i < kStreams; ++i) {
    const Stream& s = streams_[i];
    if (s.last_used == 0) continue;
    const std::uint64_t distance = offset > s.high ? offset - s.high : s.high - offset;
    // A request that was overtaken starts a whole request behind the one that overtook it.
    const bool near = offset < s.high ? distance <= std::max(options_.backward_seek, kReorder)
                                      : distance <= kReorder || (offset <= s.ahead && distance <= options_.forward_seek);
    if (near && distance < best_distance) {
      best = i;
      best_distance = distance;
    }
  }
  return best;
}

ByteRange PrefetchWindow::start_stream(ByteRange read, std::uint64_t available) {
  // A short jump forward from the place read last is the same reader going on: it keeps part of what it has earned.
  std::uint64_t window = options_.first_window;
  bool inherited = false;
  if (last_ < kStreams) {
    const Stream& s = streams_[last_];
    inherited = read.offset > s.high && read.offset - s.high <= options_.forward_seek && s.run >= kEarned;
    if (inherited) window = std::max(window, s.window / 4);
  }
  std::size_t slot = 0;
  for (std::size_t i = 1; i < kStreams; ++i) {
    if (streams_[i].last_used < streams_[slot].last_used) slot = i;
  }

  const bool handle_first = reads_ == 1;
  Stream& s = streams_[slot];
  s = Stream{};
  s.begin = read.offset;
  s.high = read.end();
  s.ahead = align_up(read.end(), kPageBytes);
  s.window = window;
  s.read_bytes = s.span = read.length;
  s.last_used = reads_;
  s.first = handle_first;
  last_ = slot;

  const bool off = is_random();
  if (!handle_first) {
    ++outside_run_;
    elsewhere_ = true;
  }
  if (size_ <= options_.first_window) return handle_first ? ask(s, 0, size_, available) : ByteRange{};
  if (off) return {};
  if (read.offset != 0 && read.length < kStreamingRead && !inherited) return {};
  return ask(s, read.offset, std::max(read.end(), read.offset + s.window), available);
}

ByteRange PrefetchWindow::continue_stream(Stream& s, ByteRange read, bool stalled, std::uint64_t available) {
  s.begin = std::min(s.begin, read.offset);
  s.read_bytes += read.length;
  const std::uint64_t advanced = read.end() > s.high ? read.end() - s.high : 0;
  s.span += advanced;
  s.read_bytes = std::min(s.read_bytes, s.span);
  s.high = std::max(s.high, read.end());
  if (s.span > kDensitySpan) {
    s.span /= 2;
    s.read_bytes /= 2;
  }
  if (advanced == 0) return {};  // late arrival of a read-ahead, or a step back: says nothing about what comes next
  if (s.read_bytes * 2 <= s.span) {
    // Strides and lookups: what lies between is not wanted.
    s.run = 0;
    ++outside_run_;
    return {};
  }
  ++s.run;
  if (is_random() && s.run < 2) return {};
  outside_run_ = 0;
  if (stalled) grow(s);

  const std::uint64_t left = s.ahead > s.high ? s.ahead - s.high : 0;
  const std::uint64_t consumed = s.window > left ? s.window - left : 0;
  if (!stalled && consumed < std::min(s.window / 2, kMaxFillBytes)) return {};
  // Inside a file a small window ends on a page, not on the next 8 MiB: a column chunk may end soon.
  const std::uint64_t unit = front_to_back(s) || s.window >= kMaxFillBytes ? kMaxFillBytes : kPageBytes;
  // What lies behind this read is asked for already, or is being skipped.
  return ask(s, std::max(s.ahead, read.offset), align_up(s.high + s.window, unit), available);
}

void PrefetchWindow::grow(Stream& s) const {
  const std::uint64_t factor = s.stalls++ == 0 ? kFirstGrowth : kGrowth;
  const std::uint64_t per_read = front_to_back(s) ? kGrowthPerReadFront : kGrowthPerReadInside;
  const std::uint64_t cap = std::min(options_.max_window, std::max(s.window, (s.high - s.begin) * per_read));
  s.window = std::min(s.window * factor, cap);
}

ByteRange PrefetchWindow::ask(Stream& s, std::uint64_t from, std::uint64_t to, std::uint64_t available) const {
  if (from >= size_) return {};
  from = align_down(from, kPageBytes);
  to = std::min(align_up(to, kPageBytes), size_);
  if (to <= from) return {};
  if (to - from > available) {
    // Whole GETs where one fits; what does not fit is asked for by a later read. A reader that has bytes ahead, or reads much in
    // order, can wait for memory (see starved); any other gets the pages that there is memory for.
    to = from + available;
    const std::uint64_t whole = align_down(to, kMaxFillBytes);
    if (whole <= from && (s.ahead > s.high || s.window >= kMaxFillBytes)) return {};
    to = whole > from ? whole : align_down(to, kPageBytes);
    if (to <= from) return {};
  }
  s.ahead = std::max(s.ahead, to);
  return {from, to - from};
}

ByteRange PrefetchWindow::starved(ByteRange read, bool taken) {
  const std::size_t index = find(read.offset);
  if (index == kStreams || is_random()) return {};
  Stream& s = streams_[index];
  if (s.window < kMaxFillBytes || s.ahead >= std::min(read.end(), size_)) return {};
  // From where asking stopped, so that requests of one read-ahead that overtook each other meet in one GET.
  const bool goes_on = s.ahead <= read.offset && read.offset - s.ahead <= kReorder;
  const std::uint64_t from = goes_on ? align_down(s.ahead, kPageBytes) : align_down(read.offset, kPageBytes);
  const std::uint64_t to = std::min(align_up(std::max(read.end(), from + 1), kMaxFillBytes), size_);
  if (taken) s.ahead = to;
  return {from, to - from};
}

void PrefetchWindow::on_dropped(ByteRange asked, std::uint64_t admitted) {
  for (Stream& s : streams_) {
    if (s.last_used != 0 && s.ahead == asked.end()) {
      s.ahead = std::max(align_down(asked.offset + admitted, kPageBytes), align_up(std::min(s.high, size_), kPageBytes));
      return;
    }
  }
}

}  // namespace thermo::read
