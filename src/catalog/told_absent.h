#pragma once
// Which names somebody was told do not exist. A kernel keeps such an answer for as long as it is valid, so it has to hear when
// one of them comes into being, and for millions of new names that nobody asked for there is nothing to tell. Two bit sets by
// hash that take turns: bounded; says yes too often now and then (a notice too many) and forgets after kNames newer names.

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "base/mutex.h"

namespace thermo::catalog {

/// Thread-safe.
class ToldAbsent {
 public:
  static constexpr std::size_t kNames = 65'536;

  void add(std::string_view path) {
    const auto [first, second] = places(path);
    MutexLock lock(mutex_);
    Bits& bits = *sets_[0];
    if (test(bits, first) && test(bits, second)) return;
    if (++names_ > kNames) {
      std::swap(sets_[0], sets_[1]);
      sets_[0]->fill(0);
      names_ = 1;
    }
    mark(*sets_[0], first);
    mark(*sets_[0], second);
  }

  [[nodiscard]] bool contains(std::string_view path) const {
    const auto [first, second] = places(path);
    MutexLock lock(mutex_);
    return (test(*sets_[0], first) && test(*sets_[0], second)) || (test(*sets_[1], first) && test(*sets_[1], second));
  }

 private:
  static constexpr std::size_t kBits = kNames * 16;
  using Bits = std::array<std::uint64_t, kBits / 64>;
  [[nodiscard]] static std::pair<std::size_t, std::size_t> places(std::string_view path) {
    const std::uint64_t hash = hash64(path);
    return {hash % kBits, (hash >> 32) % kBits};
  }
  [[nodiscard]] static bool test(const Bits& bits, std::size_t at) { return (bits[at / 64] >> (at % 64) & 1) != 0; }
  static void mark(Bits& bits, std::size_t at) { bits[at / 64] |= std::uint64_t{1} << (at % 64); }

  mutable Mutex mutex_{LockRank::kLeaf, "catalog told absent"};
  std::array<std::unique_ptr<Bits>, 2> sets_ GUARDED_BY(mutex_){std::make_unique<Bits>(), std::make_unique<Bits>()};
  std::size_t names_ GUARDED_BY(mutex_) = 0;
};

}  // namespace thermo::catalog
