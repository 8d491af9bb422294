#pragma once
// Counters of the FUSE front end.

#include <array>

#include "base/clock.h"
#include "base/metrics.h"
#include "front/fuse/protocol.h"

namespace thermo::fuse {

enum class AnsweredBy : std::uint8_t { kInline, kPool, kDeadline };

/// Thread-safe.
class OpMetrics {
 public:
  explicit OpMetrics(metrics::Registry& registry);
  void count(std::uint32_t opcode, Nanos took, AnsweredBy by);

 private:
  std::array<metrics::Counter*, kOpcodeLimit> ops_{};
  metrics::Counter& unknown_;
  metrics::Histogram& read_;
  metrics::Histogram& lookup_;
  metrics::Histogram& open_;
  metrics::Counter& inline_;
  metrics::Counter& pool_;
  metrics::Counter& deadline_;
};

}  // namespace thermo::fuse
