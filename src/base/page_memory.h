#pragma once
// Memory for buffers of one page (1 MiB), which come and go at the speed of the network. Fresh memory costs a fault per 4 KiB, so
// what is given back is kept. What nobody needed for a while goes back to the kernel.

#include <cstddef>
#include <vector>

#include "base/mutex.h"

namespace thermo {

/// Thread-safe. Pages in use and in stock together are never more than were in use at one time.
class PageMemory {
 public:
  static constexpr std::size_t kBytes = std::size_t{1} << 20;

  PageMemory() = default;
  /// Every page was given back.
  ~PageMemory();
  PageMemory(const PageMemory&) = delete;
  PageMemory& operator=(const PageMemory&) = delete;

  /// The one of this process; it outlives every static that may still hold a buffer.
  [[nodiscard]] static PageMemory& instance();

  /// 4 KiB-aligned, of kBytes, with anything in it. Throws bad_alloc.
  [[nodiscard]] std::byte* take();
  void give_back(std::byte* page);
  /// Gives to the kernel what was in stock all the time since the last call. Called every few seconds.
  void trim();
  /// Other memory of so many bytes is taken: as much of the stock goes, so that a budget for what is in use bounds both.
  void make_way(std::size_t bytes);

  struct Stock {
    std::size_t warm = 0;  ///< pages with memory behind them
    std::size_t cold = 0;  ///< addresses only
  };
  [[nodiscard]] Stock stock() const;

 private:
  void to_kernel(std::vector<std::byte*> pages);

  mutable Mutex mutex_{LockRank::kLeaf, "page memory"};
  std::vector<std::byte*> warm_ GUARDED_BY(mutex_);  // the last one given back is taken first
  std::vector<std::byte*> cold_ GUARDED_BY(mutex_);
  std::size_t least_warm_ GUARDED_BY(mutex_) = 0;  // since the last trim
  std::size_t owed_ GUARDED_BY(mutex_) = 0;        // bytes of make_way() that are less than a page
};

}  // namespace thermo
