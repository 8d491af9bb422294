#pragma once
// Private to s3sim: which keys and common prefixes a page of a listing holds. Exact as S3 is; the reference for our own list
// logic.

#include <cstdint>
#include <string>
#include <vector>

#include "s3sim/types.h"

namespace thermo::s3sim {

/// Walks keys in S3 order (bytewise).
class KeyCursor {
 public:
  virtual ~KeyCursor() = default;
  /// To the first key >= `key`.
  virtual void seek(const std::string& key) = 0;
  virtual void next() = 0;
  [[nodiscard]] virtual bool valid() const = 0;
  [[nodiscard]] virtual const std::string& key() const = 0;
  [[nodiscard]] virtual ObjectPtr object() const = 0;
};

struct ListQuery {
  std::string prefix;
  std::string delimiter;
  std::string after;  ///< only keys > this (start-after, marker)
  std::string from;   ///< only keys >= this (a continuation); wins over `after`
  /// Version 1 markers may be a common prefix that was returned: a prefix that `after` starts with is not returned again. Version
  /// 2's start-after knows keys only.
  bool marker_covers_prefix = false;
  std::uint32_t max_keys = 1000;
};

struct ListItem {
  std::string name;
  ObjectPtr object;  ///< null: a common prefix
};

struct ListPage {
  std::vector<ListItem> items;  ///< keys and common prefixes together, in order; at most max_keys
  bool truncated = false;       ///< something follows
  std::string next;             ///< first key that did not fit, when truncated
};

[[nodiscard]] ListPage list_page(KeyCursor& cursor, const ListQuery& query);

/// Smallest string greater than all that start with `prefix`; empty when there is none (all bytes 0xFF).
[[nodiscard]] std::string after_prefix(std::string prefix);

}  // namespace thermo::s3sim
