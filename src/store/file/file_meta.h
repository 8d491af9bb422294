#pragma once
// Content type and user metadata of an object, kept in extended attributes of its file ("user.thermo.type",
// "user.thermo.meta.NAME").

#include "base/result.h"
#include "store/object_store.h"

namespace thermo::store::file {

/// kNotSupported names the file when its file system keeps no extended attributes and there is something to keep.
[[nodiscard]] Result<void> write_meta(int fd, const std::string& path, const PutOptions& options);

/// Fills content_type and metadata of `info`; what cannot be read is left empty.
void read_meta(const std::string& path, ObjectInfo& info);

}  // namespace thermo::store::file
