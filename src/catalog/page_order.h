#pragma once
// Some stores do not list in the order of keys: SeaweedFS walks directories, so that "a/x" comes before "a-b". A page in order
// tells of all keys up to its last one; a page out of order tells only of those that it names.

#include <vector>

#include "catalog/applier.h"

namespace thermo::catalog {

/// kCorrupt, with the key, when a page leaves its prefix, does not ascend, or goes back behind where its stretch begins.
[[nodiscard]] Result<void> check_order(const Coverage& coverage, const store::ListPage& page);

/// Why a page of a subtree is not used.
[[nodiscard]] Error unordered_error();

/// True when the end of the stretch lies where an order by directories differs from that of keys: the page has the group "q/",
/// and the stretch ends between "q" and "q/". What it lacks up to its end may then come later, and "q/" itself is asked for
/// nowhere.
[[nodiscard]] bool ends_in_doubt(const Coverage& coverage, const store::ListPage& page);

/// The same of a page of a subtree that goes on: true for a key which, by directories, would come after its last one.
[[nodiscard]] bool is_in_doubt(const Coverage& coverage, std::string_view key);

/// All objects and groups of a listing, in whatever order they came: sorted, each once, cut into pages of at most `size` names.
/// At least one page.
[[nodiscard]] std::vector<store::ListPage> pages_in_order(store::ListPage all, std::size_t size);

}  // namespace thermo::catalog
