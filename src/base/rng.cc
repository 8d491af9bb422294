#include "base/rng.h"

#include <random>

namespace thermo {

Rng Rng::from_os() {
  std::random_device device;
  return Rng((static_cast<std::uint64_t>(device()) << 32) | device());
}

std::uint64_t Rng::next() {
  state_ += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::uint64_t Rng::below(std::uint64_t bound) { return next() % bound; }

double Rng::unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

std::string Rng::hex(int digits) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int i = 0; i < digits; ++i) text += kDigits[next() & 15];
  return text;
}

}  // namespace thermo
