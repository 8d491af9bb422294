#include "base/crc32c.h"

#include <isa-l/crc.h>

#include <array>

namespace thermo {

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous) {
  // crc32_iscsi takes a non-const pointer and an int length; it reads only.
  auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
  std::size_t left = bytes.size();
  std::uint32_t state = ~previous;
  constexpr std::size_t kStep = std::size_t{1} << 30;
  while (left > 0) {
    const std::size_t step = left < kStep ? left : kStep;
    state = crc32_iscsi(data, static_cast<int>(step), state);
    data += step;
    left -= step;
  }
  return ~state;
}

namespace {

using Matrix = std::array<std::uint32_t, 32>;

std::uint32_t times(const Matrix& matrix, std::uint32_t vector) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; vector != 0; ++i, vector >>= 1) {
    if ((vector & 1) != 0) sum ^= matrix[i];
  }
  return sum;
}

Matrix squared(const Matrix& matrix) {
  Matrix result{};
  for (std::size_t i = 0; i < 32; ++i) result[i] = times(matrix, matrix[i]);
  return result;
}

}  // namespace

std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t length_b) {
  // Appending one zero bit is a linear map on the CRC state; squaring it gives 2, 4, 8... bits.
  Matrix step{};
  step[0] = 0x82f63b78U;  // reflected Castagnoli polynomial
  for (std::size_t i = 1; i < 32; ++i) step[i] = 1U << (i - 1);
  step = squared(squared(squared(step)));  // 8 bits = one byte
  for (; length_b != 0; length_b >>= 1) {
    if ((length_b & 1) != 0) crc_a = times(step, crc_a);
    step = squared(step);
  }
  return crc_a ^ crc_b;
}

}  // namespace thermo
