#pragma once
// INIT: which version and which features kernel and mount agree on. Pure.

#include <cstdint>

#include "base/result.h"
#include "front/fuse/protocol.h"

namespace thermo::fuse {

/// What was agreed.
struct Negotiated {
  std::uint32_t minor = 0;
  std::uint64_t flags = 0;
  std::uint32_t max_readahead = 0;  ///< bytes, as the kernel offers
  std::uint32_t max_read = 0;       ///< bytes of the largest READ to be expected
  [[nodiscard]] bool has(std::uint64_t flag) const { return (flags & flag) != 0; }
};

inline constexpr std::uint32_t kMaxPagesPerRequest = 256;  ///< 1 MiB, the kernel's default ceiling
inline constexpr std::uint32_t kMaxWrite = 128u << 10;     ///< nothing is written here; sizes the request buffers
/// Requests the kernel sends ahead of their readers at most; its own default of 12 starves a store with a long first byte.
inline constexpr std::uint16_t kMaxBackground = 64;
inline constexpr std::uint16_t kCongestionThreshold = 48;

/// `max_minor` caps the offered version (tests of older kernels). kNotSupported names both versions.
[[nodiscard]] Result<Negotiated> negotiate(const InitIn& offer, std::uint32_t max_minor);
/// The answer to INIT.
[[nodiscard]] InitOut init_answer(const Negotiated& agreed);

}  // namespace thermo::fuse
