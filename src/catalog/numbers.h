#pragma once
// Hands out file numbers that are never used twice, not even after a crash: the upper bound of a block is on the device before
// the first number of the block is used.

#include "catalog/catalog.h"

namespace thermo::catalog {

inline constexpr int kNumberBits = 44;
/// A new database begins at a multiple of this, above the ranges of its forerunners, so that their numbers stay unknown.
inline constexpr Number kNumberRange = Number{1} << 30;

/// Not thread-safe: used by whoever holds the writer's turn.
class NumberAllocator {
 public:
  explicit NumberAllocator(io::KvStore& kv) : kv_(kv) {}

  /// Reads the bound. `first` is where a database without one begins.
  [[nodiscard]] Result<void> open(Number first);
  /// kNoSpace when all 44 bits are used up.
  [[nodiscard]] Result<Number> next();

 private:
  static constexpr Number kBlock = 8192;
  io::KvStore& kv_;
  Number next_ = 0;
  Number bound_ = 0;  // numbers below it may be handed out
};

}  // namespace thermo::catalog
