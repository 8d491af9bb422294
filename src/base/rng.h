#pragma once
// Randomness comes only from an Rng, so that a test's seed decides everything.

#include <cstdint>
#include <string>

namespace thermo {

/// splitmix64: small, fast, seedable; not for secrets. Not thread-safe: one per owner.
class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}
  /// Seeded from the operating system.
  [[nodiscard]] static Rng from_os();

  [[nodiscard]] std::uint64_t next();
  /// Uniform in [0, bound); bound > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound);
  /// Uniform in [0, 1).
  [[nodiscard]] double unit();
  [[nodiscard]] bool chance(double probability) { return unit() < probability; }
  /// `digits` hexadecimal digits, for request ids and temporary names.
  [[nodiscard]] std::string hex(int digits);

 private:
  std::uint64_t state_;
};

}  // namespace thermo
