#include "base/buffer.h"

#include <array>
#include <cstdlib>
#include <new>

#include "base/mutex.h"

namespace thermo {
namespace {

// Buffers of one page (1 MiB) come and go at the speed of the network; malloc would map and unmap each (its threshold for
// mmap is below 1 MiB at start), and fresh pages cost a fault per 4 KiB. A few are kept.
constexpr std::size_t kKeptSize = std::size_t{1} << 20;
constexpr std::size_t kKept = 32;
constexpr std::size_t kAlignment = 4096;

struct FreeList {
  Mutex mutex{LockRank::kLeaf, "buffer free list"};
  std::array<std::byte*, kKept> items GUARDED_BY(mutex){};
  std::size_t count GUARDED_BY(mutex) = 0;
};

FreeList& free_list() {
  static FreeList* list = new FreeList;  // outlives every static that may still hold a buffer
  return *list;
}

std::byte* take(std::size_t size) {
  if (size == kKeptSize) {
    auto& list = free_list();
    MutexLock lock(list.mutex);
    if (list.count > 0) return list.items[--list.count];
  }
  const std::size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
}

void give_back(std::byte* data, std::size_t size) {
  if (size == kKeptSize) {
    auto& list = free_list();
    MutexLock lock(list.mutex);
    if (list.count < kKept) {
      list.items[list.count++] = data;
      return;
    }
  }
  std::free(data);
}

}  // namespace

Buffer::Buffer(MemoryReservation reservation, std::byte* data, std::size_t size)
    : reservation_(std::move(reservation)), data_(data), size_(size) {}

Buffer::~Buffer() { give_back(data_, size_); }

std::shared_ptr<Buffer> Buffer::allocate(MemoryReservation reservation, std::size_t size) {
  return std::shared_ptr<Buffer>(new Buffer(std::move(reservation), take(size), size));
}

}  // namespace thermo
