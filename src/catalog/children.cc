// Knowledge::children: files and folder records of one prefix, merged in key order.

#include <algorithm>
#include <vector>

#include "catalog/knowledge.h"

namespace thermo::catalog {
namespace {

// Folder records are taken in portions, so that a folder with a million sub-folders does not sit in memory.
constexpr std::size_t kFolderPortion = 2048;

struct ChildFolder {
  std::string prefix;
  FolderRecord record;
};

/// One pass over files and folders that lie in [lower, end of prefix).
class ChildMerge {
 public:
  ChildMerge(Knowledge& knowledge, std::string_view prefix, const std::function<bool(const ListedName&)>& visit, bool may_wait)
      : knowledge_(knowledge), prefix_(prefix), visit_(visit), may_wait_(may_wait) {}

  Result<void> run(std::string lower) {
    do {
      TRY(load_folders(lower));
      TRY(merge_files(lower));
      while (!stopped_ && next_ < folders_.size()) emit(folders_[next_++]);
      if (!folders_.empty()) lower = prefix_end(folders_.back().prefix);
    } while (!stopped_ && !last_portion_);
    return {};
  }

 private:
  /// The name of the child to which a key or prefix belongs, and whether it lies deeper than that child.
  [[nodiscard]] std::string_view below(std::string_view key) const { return key.substr(prefix_.size()); }

  Result<void> load_folders(const std::string& lower) {
    folders_.clear();
    next_ = 0;
    last_portion_ = true;
    Error damaged(ErrorCode::kInternal);
    bool failed = false;
    const std::string header = folder_key(knowledge_.store(), prefix_);
    TRY(knowledge_.kv().scan(
        folder_key(knowledge_.store(), lower),
        [&](std::string_view key, std::string_view value, io::KvStore::Cursor& cursor) {
          if (!key.starts_with(header)) return false;
          const std::string_view folder = key.substr(kStoreHeader);
          const auto slash = folder.find('/', prefix_.size());
          if (slash == std::string_view::npos) return true;  // the record of `prefix` itself
          if (slash + 1 != folder.size()) {
            cursor.seek = folder_key(knowledge_.store(), prefix_end(folder.substr(0, slash + 1)));
            return true;
          }
          if (folders_.size() == kFolderPortion) {
            last_portion_ = false;
            return false;
          }
          auto record = decode_folder(value);
          if (!record) {
            damaged = record.error();
            failed = true;
            return false;
          }
          if (record->exists()) folders_.push_back({std::string(folder), *record});
          return true;
        },
        may_wait_));
    if (failed) return fail(damaged);
    return {};
  }

  Result<void> merge_files(const std::string& lower) {
    Result<void> outcome;
    const std::string header = file_key(knowledge_.store(), prefix_);
    TRY(knowledge_.kv().scan(
        file_key(knowledge_.store(), lower),
        [&](std::string_view key, std::string_view value, io::KvStore::Cursor& cursor) {
          if (!key.starts_with(header)) return false;
          const std::string_view file = key.substr(kStoreHeader);
          if (!last_portion_ && file > folders_.back().prefix) return false;
          const auto slash = file.find('/', prefix_.size());
          if (slash != std::string_view::npos) {
            cursor.seek = file_key(knowledge_.store(), prefix_end(file.substr(0, slash + 1)));
            return true;
          }
          while (!stopped_ && next_ < folders_.size() && folders_[next_].prefix < file) emit(folders_[next_++]);
          if (stopped_) return false;
          const auto hidden = is_hidden(file);
          if (!hidden) {
            outcome = fail(hidden.error());
            return false;
          }
          if (*hidden) return true;
          const auto record = decode_file(value);
          if (!record) {
            outcome = fail(record.error());
            return false;
          }
          const Entry entry = knowledge_.to_file(file, *record);
          stopped_ = !visit_({below(file), &entry});
          return !stopped_;
        },
        may_wait_));
    return outcome;
  }

  /// A folder of the same name takes the name; it comes later in key order.
  Result<bool> is_hidden(std::string_view file) {
    if (folders_.empty() && last_portion_) return false;
    const std::string folder = std::string(file) + "/";
    const auto it = std::lower_bound(folders_.begin() + static_cast<std::ptrdiff_t>(next_), folders_.end(), folder,
                                     [](const ChildFolder& child, const std::string& key) { return child.prefix < key; });
    if (it != folders_.end()) return it->prefix == folder;
    if (last_portion_) return false;
    TRY_ASSIGN(const auto bytes, knowledge_.kv().get(folder_key(knowledge_.store(), folder), may_wait_));
    if (!bytes) return false;
    TRY_ASSIGN(const auto record, decode_folder(*bytes));
    return record.exists();
  }

  void emit(const ChildFolder& child) {
    const Entry entry = Knowledge::to_folder(child.prefix, child.record);
    stopped_ = !visit_({folder_path(below(child.prefix)), &entry});
  }

  Knowledge& knowledge_;
  const std::string prefix_;
  const std::function<bool(const ListedName&)>& visit_;
  const bool may_wait_;
  std::vector<ChildFolder> folders_;
  std::size_t next_ = 0;
  bool last_portion_ = true;
  bool stopped_ = false;
};

}  // namespace

Result<void> Knowledge::children(std::string_view prefix, std::string_view after,
                                 const std::function<bool(const ListedName&)>& visit, bool may_wait) {
  std::string lower(prefix);
  if (!after.empty()) {
    lower.append(after);
    // In key order a folder stands where "name/" sorts, a file where "name" does: "a", "a-b", "a/".
    TRY_ASSIGN(const auto known, name(lower, may_wait));
    lower = known->folder_exists() ? prefix_end(lower + "/") : lower + std::string(1, '\0');
  }
  ChildMerge merge(*this, prefix, visit, may_wait);
  return merge.run(std::move(lower));
}

}  // namespace thermo::catalog
