#pragma once
// PrefetchWindow: decides what to ask for ahead of one handle's reads. Pure state machine: no I/O, no clock, no lock.

#include <array>
#include <cstdint>

#include "read/reader.h"

namespace thermo::read {

/// Follows up to kStreams places at which a handle reads in order (a whole file, or the column chunks of a table read side by
/// side). A stream keeps `window` bytes asked for ahead of its furthest read; the window grows when the reader had to wait. Reads
/// out of any order ask for nothing.
///
/// All answers start and end on whole pages (cache::kPageBytes) or at the end of the object: pages are what a cache fills anyway.
/// Not thread-safe. About 1 KiB.
class PrefetchWindow {
 public:
  PrefetchWindow(std::uint64_t object_size, const Options& options) : size_(object_size), options_(options) {}

  /// One read, in the order of arrival, told once. `stalled`: its bytes were not here yet. `available`: bytes of memory that may
  /// be asked for now. Returns what to fetch (length 0 = nothing), at most `available` bytes; may overlap the read itself, so
  /// that the read and what follows it become one request. What one sequential reader gets over time has neither gap nor overlap.
  [[nodiscard]] cache::ByteRange on_read(cache::ByteRange read, bool stalled, std::uint64_t available);

  /// For a read that has to wait: the rest of its GET, when its stream reads in order and nothing that it lacks was asked for,
  /// because there was no memory. `taken`: it is asked for now. Length 0 otherwise.
  [[nodiscard]] cache::ByteRange starved(cache::ByteRange read, bool taken);

  /// Of the range answered last to some read only the first `admitted` bytes were taken: the rest will be asked for again.
  void on_dropped(cache::ByteRange asked, std::uint64_t admitted);

  /// True after several reads in a row out of order: prefetch is off until reads in order show again.
  [[nodiscard]] bool is_random() const { return outside_run_ >= kOffAfter; }
  /// Window of the stream touched last; 0 before the first read.
  [[nodiscard]] std::uint64_t window() const { return last_ < kStreams ? streams_[last_].window : 0; }

  /// DuckDB and pyarrow read a dozen column chunks of one row group in turn through one handle.
  static constexpr std::size_t kStreams = 16;
  static constexpr std::uint32_t kOffAfter = 3;

 private:
  struct Stream {
    std::uint64_t begin = 0;  ///< lowest offset read
    std::uint64_t high = 0;   ///< highest end read
    std::uint64_t ahead = 0;  ///< end of what was asked for
    std::uint64_t window = 0;
    std::uint64_t read_bytes = 0;  ///< of the last kDensitySpan bytes or so: together with `span` how dense the reads are
    std::uint64_t span = 0;
    std::uint64_t last_used = 0;  ///< 0 = empty slot
    std::uint32_t stalls = 0;
    std::uint32_t run = 0;  ///< dense reads in a row that moved on
    bool first = false;     ///< the handle's first stream
  };

  [[nodiscard]] std::size_t find(std::uint64_t offset) const;
  [[nodiscard]] cache::ByteRange start_stream(cache::ByteRange read, std::uint64_t available);
  [[nodiscard]] cache::ByteRange continue_stream(Stream& stream, cache::ByteRange read, bool stalled, std::uint64_t available);
  void grow(Stream& stream) const;
  [[nodiscard]] bool front_to_back(const Stream& stream) const { return stream.first && stream.begin == 0 && !elsewhere_; }
  [[nodiscard]] cache::ByteRange ask(Stream& stream, std::uint64_t from, std::uint64_t to, std::uint64_t available) const;

  const std::uint64_t size_;
  const Options options_;
  std::array<Stream, kStreams> streams_{};
  std::size_t last_ = kStreams;
  std::uint64_t reads_ = 0;
  std::uint32_t outside_run_ = 0;  ///< reads in a row that were not in order
  bool elsewhere_ = false;         ///< the handle read at more than one place
};

}  // namespace thermo::read
