#pragma once
// Where the bytes of a streamed body go.

#include <cstddef>
#include <span>

#include "base/result.h"

namespace thermo {

/// Receives a body piece by piece, in order, on a thread of whoever reads it. Must not block on disk or network.
class BodySink {
 public:
  virtual ~BodySink() = default;
  /// An error ends the transfer with that error. Bytes may arrive before a failure is known; after a retry the stream goes on
  /// where it stopped, never back.
  [[nodiscard]] virtual Result<void> write(std::span<const std::byte> bytes) = 0;
};

}  // namespace thermo
