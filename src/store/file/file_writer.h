#pragma once
// Writes one object so that readers and crashes see the old file or the new one, never a part.

#include <span>
#include <string>

#include "store/file/key_locks.h"
#include "store/object_store.h"

namespace thermo::store::file {

/// Temporary file beside the target, fsync, rename, fsync of the folder; missing folders are made. A key with a trailing '/'
/// makes a folder. `if_none_match` is decided by the file system; `if_match` among the writers of this store only: a local
/// program that replaces the file between check and rename is overwritten. kPreconditionFailed, kNotFound (if_match on nothing),
/// kNotDirectory, kIsDirectory, kNoSpace, kReadOnly, kAccessDenied.
[[nodiscard]] Result<PutInfo> write_object(KeyLocks& locks, const std::string& root, const std::string& key,
                                           std::span<const std::byte> body, const PutOptions& options);

}  // namespace thermo::store::file
