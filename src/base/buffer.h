#pragma once
// Page-aligned memory that holds its share of the memory budget for as long as it lives.

#include <cstddef>
#include <memory>
#include <span>

#include "base/memory_budget.h"

namespace thermo {

/// Shared through BufferPtr; the bytes may be written only by whoever fills it, before it is published.
class Buffer {
 public:
  /// 4 KiB-aligned, uninitialised memory of `size` bytes (fresh pages or reused ones: never assume zeros).
  [[nodiscard]] static std::shared_ptr<Buffer> allocate(MemoryReservation reservation, std::size_t size);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] std::byte* data() { return data_; }
  [[nodiscard]] const std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  Buffer(MemoryReservation reservation, std::byte* data, std::size_t size);
  MemoryReservation reservation_;
  std::byte* data_;
  std::size_t size_;
};
using BufferPtr = std::shared_ptr<Buffer>;

/// Bytes that stay valid while `owner` lives.
struct Slice {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

}  // namespace thermo
