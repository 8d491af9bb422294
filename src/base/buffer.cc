#include "base/buffer.h"

#include <cstdlib>
#include <new>

#include "base/page_memory.h"

namespace thermo {
namespace {

constexpr std::size_t kAlignment = 4096;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kReused = false;  // memory that is used after it was given back must be noticed
#else
constexpr bool kReused = true;
#endif

std::byte* take(std::size_t size) {
  if (kReused && size == PageMemory::kBytes) return PageMemory::instance().take();
  if (kReused) PageMemory::instance().make_way(size);
  const std::size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
}

void give_back(std::byte* data, std::size_t size) {
  if (kReused && size == PageMemory::kBytes) PageMemory::instance().give_back(data);
  else std::free(data);
}

}  // namespace

Buffer::Buffer(MemoryReservation reservation, std::byte* data, std::size_t size)
    : reservation_(std::move(reservation)), data_(data), size_(size) {}

Buffer::~Buffer() { give_back(data_, size_); }

std::shared_ptr<Buffer> Buffer::allocate(MemoryReservation reservation, std::size_t size) {
  return std::shared_ptr<Buffer>(new Buffer(std::move(reservation), take(size), size));
}

}  // namespace thermo
