#pragma once
// Some stores do not list in the order of keys: SeaweedFS walks directories, so that "a/x" comes before "a-b". A page in order
// tells of all keys up to its last one; a page out of order tells only of those that it names.

#include <vector>

#include "catalog/applier.h"

namespace thermo::catalog {

/// kCorrupt, with the key, when a page leaves its prefix, does not ascend, or goes back behind where its stretch begins.
[[nodiscard]] Result<void> check_order(const Coverage& coverage, const store::ListPage& page);

/// All objects and groups of a listing, in whatever order they came: sorted, each once, cut into pages of at most `size` names.
/// At least one page.
[[nodiscard]] std::vector<store::ListPage> pages_in_order(store::ListPage all, std::size_t size);

}  // namespace thermo::catalog
