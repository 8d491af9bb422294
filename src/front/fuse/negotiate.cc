#include "front/fuse/negotiate.h"

#include <algorithm>
#include <string>

namespace thermo::fuse {
namespace {

struct Feature {
  std::uint64_t flag;
  std::uint32_t since;  ///< protocol minor that brought it
};

// Not wanted: AUTO_INVAL_DATA (a nodeid is one version, so cached pages never go stale), WRITEBACK_CACHE, NO_OPENDIR_SUPPORT,
// POSIX and FLOCK locks (the kernel keeps them locally).
constexpr Feature kWanted[] = {
    {kAsyncRead, 6},       {kDoReaddirplus, 21}, {kReaddirplusAuto, 21}, {kAsyncDio, 22},
    {kParallelDirops, 25}, {kMaxPages, 28},      {kCacheSymlinks, 28},   {kExplicitInvalData, 30},
    {kInitExt, 36},        {kHasExpireOnly, 38}, {kHasResend, 40},
};

}  // namespace

Result<Negotiated> negotiate(const InitIn& offer, std::uint32_t max_minor) {
  if (offer.major != kProtocolMajor || std::min(offer.minor, max_minor) < kMinProtocolMinor) {
    return fail(ErrorCode::kNotSupported, "the kernel offers FUSE " + std::to_string(offer.major) + "." +
                                              std::to_string(offer.minor) + ", capped to 7." + std::to_string(max_minor) +
                                              "; at least 7." + std::to_string(kMinProtocolMinor) + " is needed (Linux 3.15)");
  }
  Negotiated agreed;
  agreed.minor = std::min({offer.minor, kProtocolMinor, max_minor});
  std::uint64_t offered = offer.flags;
  if ((offer.flags & kInitExt) != 0) offered |= std::uint64_t{offer.flags2} << 32;
  for (const auto& feature : kWanted) {
    if (feature.since <= agreed.minor) agreed.flags |= feature.flag & offered;
  }
  agreed.max_readahead = offer.max_readahead;
  agreed.max_read = agreed.has(kMaxPages) ? kMaxPagesPerRequest * 4096 : 32 * 4096;
  return agreed;
}

InitOut init_answer(const Negotiated& agreed) {
  InitOut out{};
  out.major = kProtocolMajor;
  out.minor = agreed.minor;
  out.max_readahead = agreed.max_readahead;
  out.flags = static_cast<std::uint32_t>(agreed.flags);
  out.flags2 = static_cast<std::uint32_t>(agreed.flags >> 32);
  out.max_background = kMaxBackground;
  out.congestion_threshold = kCongestionThreshold;
  out.max_write = kMaxWrite;
  out.time_gran = 1;
  out.max_pages = agreed.has(kMaxPages) ? static_cast<std::uint16_t>(kMaxPagesPerRequest) : std::uint16_t{0};
  return out;
}

}  // namespace thermo::fuse
