#pragma once
// A folder as a store, the embedded default: key = relative path. ETag from ctime, size and inode; an edit in place never mixes
// versions.

#include "base/result.h"
#include "store/object_store.h"

namespace thermo::store {

/// `root` must be an existing folder; kInvalidArgument names it otherwise. `id()` is "file:///real/path".
[[nodiscard]] Result<ObjectStorePtr> make_file_store(const std::string& root);

}  // namespace thermo::store
