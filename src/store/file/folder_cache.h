#pragma once
// Sorted contents of folders. Large folders are kept for the next page: reading a million names again for each page of a thousand
// would be quadratic.

#include <sys/stat.h>

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/context.h"
#include "base/mutex.h"
#include "base/result.h"

namespace thermo::store::file {

/// What a folder held at one moment, in key order: names of files, names of folders with a '/' behind. Special files, dangling
/// links and unfinished writes are left out. Immutable.
class Folder {
 public:
  struct Child {
    std::string_view name;  ///< with '/' when it is a folder
    bool link = false;      ///< reached through a symbolic link: may lead back to an ancestor
    [[nodiscard]] bool folder() const { return name.ends_with('/'); }
  };
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] Child at(std::size_t index) const {
    const Item& item = items_[index];
    return {std::string_view(arena_).substr(item.offset, item.length), item.link};
  }
  /// Index of the first child whose name is >= `name`.
  [[nodiscard]] std::size_t lower_bound(std::string_view name) const;
  [[nodiscard]] const struct stat& status() const { return status_; }
  [[nodiscard]] std::size_t memory() const { return arena_.size() + items_.size() * sizeof(Item); }

 private:
  friend class FolderCache;
  struct Item {
    std::uint64_t offset;
    std::uint16_t length;
    bool link;
  };
  std::string arena_;
  std::vector<Item> items_;
  struct stat status_{};
};

/// Thread-safe. At most kMaxBytes of names are kept; larger folders are read for each page.
class FolderCache {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{32} << 20;
  static constexpr std::size_t kMinChildren = 256;  ///< smaller folders are read again faster than they are looked up

  /// kNotFound, kNotDirectory, kAccessDenied, kIo, kTimeout, kCancelled.
  [[nodiscard]] Result<std::shared_ptr<const Folder>> read(const RequestContext& ctx, const std::string& path);

 private:
  [[nodiscard]] std::shared_ptr<const Folder> find(const struct stat& st);
  void keep(const std::shared_ptr<const Folder>& folder);

  Mutex mutex_{LockRank::kStore, "folder cache"};
  std::list<std::shared_ptr<const Folder>> kept_ GUARDED_BY(mutex_);  // last used first
  std::size_t bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace thermo::store::file
