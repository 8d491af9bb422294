#pragma once
// One process per cache folder: an flock on its `lock` file, which goes away with the process however it ends.

#include <memory>

#include "io/file.h"

namespace thermo::cache {

/// Takes the lock for as long as the answer lives. kBusy names the process that holds it.
[[nodiscard]] Result<std::unique_ptr<io::File>> lock_folder(io::Disk& disk);

}  // namespace thermo::cache
