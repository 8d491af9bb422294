#pragma once
// What the fuzz targets share: a check that ends the run, and bytes taken off the front of an input.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

/// A property that must hold for every input; the fuzzer keeps the input that breaks it.
#define FUZZ_CHECK(condition)                                                             \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)

namespace thermo::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Takes an input apart. Past its end everything is zero or empty.
class Input {
 public:
  explicit Input(std::string_view rest) : rest_(rest) {}

  [[nodiscard]] bool empty() const { return rest_.empty(); }
  [[nodiscard]] std::string_view rest() const { return rest_; }
  std::uint8_t byte() {
    const auto taken = bytes(1);
    return taken.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(taken[0]);
  }
  /// Little-endian.
  std::uint64_t number(std::size_t width) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) value |= std::uint64_t{byte()} << (8 * i);
    return value;
  }
  std::string_view bytes(std::size_t n) {
    const auto taken = rest_.substr(0, n);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  /// Up to `end`, which is removed too; the whole rest when there is none.
  std::string_view until(char end) {
    const auto at = rest_.find(end);
    const auto taken = rest_.substr(0, at);
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at + 1);
    return taken;
  }
  std::string_view line() { return until('\n'); }

 private:
  std::string_view rest_;
};

}  // namespace thermo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
