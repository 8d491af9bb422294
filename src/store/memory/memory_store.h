#pragma once
// A store in memory with truly flat keys: for tests and s3sim.

#include "base/clock.h"
#include "store/object_store.h"

namespace thermo::store {

/// Every verb that this release uses, conditions included. `id()` is "memory:///<name>". ETag = quoted hash of the bytes.
[[nodiscard]] ObjectStorePtr make_memory_store(const std::string& name, const Clock& clock = Clock::system());

}  // namespace thermo::store
