#include "s3sim/list.h"

#include <algorithm>

namespace thermo::s3sim {

std::string after_prefix(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xFF) prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

ListPage list_page(KeyCursor& cursor, const ListQuery& query) {
  ListPage page;
  // S3 answers max-keys=0 with an empty page that is not truncated, whatever the bucket holds.
  if (query.max_keys == 0) return page;
  const bool continued = !query.from.empty();
  cursor.seek(std::max(query.prefix, continued ? query.from : query.after));
  if (!continued && !query.after.empty() && cursor.valid() && cursor.key() == query.after) cursor.next();

  while (cursor.valid() && cursor.key().starts_with(query.prefix)) {
    const std::size_t at = query.delimiter.empty() ? std::string::npos : cursor.key().find(query.delimiter, query.prefix.size());
    std::string group;
    if (at != std::string::npos) group = cursor.key().substr(0, at + query.delimiter.size());
    const bool seen = query.marker_covers_prefix && !continued && !group.empty() && query.after.starts_with(group);
    if (!seen) {
      if (page.items.size() == query.max_keys) {
        page.truncated = true;
        page.next = cursor.key();
        return page;
      }
      page.items.push_back(group.empty() ? ListItem{cursor.key(), cursor.object()} : ListItem{group, nullptr});
    }
    if (group.empty()) {
      cursor.next();
      continue;
    }
    const std::string beyond = after_prefix(group);
    if (beyond.empty()) return page;
    cursor.seek(beyond);
  }
  return page;
}

}  // namespace thermo::s3sim
