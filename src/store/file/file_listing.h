#pragma once
// A folder tree as an S3 listing: bytewise order of whole keys, groups, pages that seek to where the one before ended.

#include <string>

#include "store/file/folder_cache.h"
#include "store/object_store.h"

namespace thermo::store::file {

/// One page of the tree below `root` (an absolute path without '/' at its end; "" for the root of the file system). Reads only
/// the folders on the way to the page and those the page shows. Links are followed, but not to a folder that is an ancestor of
/// itself. A folder that shows nothing, and one that may not be read, is an object "folder/" of size 0 in its parent's flat
/// listing; asking for the inside of one that may not be read is kAccessDenied. A prefix below which nothing exists is an empty
/// page.
[[nodiscard]] Result<ListPage> list_folder_page(const RequestContext& ctx, FolderCache& cache, const std::string& root,
                                                const ListRequest& request);

}  // namespace thermo::store::file
