#pragma once
// Writing answers to /dev/fuse.

#include <cstdint>

#include "front/fuse/handlers.h"

namespace thermo::fuse {

enum class Sent : std::uint8_t {
  kTaken,
  kGone,    ///< nobody waits any more: interrupted, aborted or unmounted
  kFailed,  ///< the kernel refused the answer (a bug or no memory); it got EIO instead
};

/// One answer goes out whole in one writev. Never blocks on anything but memory. Thread-safe.
Sent send_error(int device, std::uint64_t unique, int error);
Sent send_answer(int device, std::uint64_t unique, const Answer& answer);

}  // namespace thermo::fuse
