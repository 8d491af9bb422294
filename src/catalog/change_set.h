#pragma once
// The writes that follow from one answer of the store, collected and committed as one batch.

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "catalog/applier.h"

namespace thermo::catalog {

/// Lives inside the writer's turn. Not thread-safe.
class ChangeSet {
 public:
  ChangeSet(Knowledge& knowledge, WriterShared& shared) : knowledge_(knowledge), shared_(shared) {}

  /// What a request that began at `started` told of an object. `alone`: also that no folder has its name.
  struct Look {
    WallNanos started = 0;
    bool alone = false;
  };
  [[nodiscard]] Result<void> add_file(const store::ObjectInfo& info, const Look& look);
  /// Another version starts a generation; the same one keeps number, generation and ino. `note` writes also that it was looked
  /// at.
  [[nodiscard]] Result<void> update_file(const store::ObjectInfo& info, FileRecord record, const Look& look, bool note);
  [[nodiscard]] Result<void> remove_file(std::string_view key, const FileRecord& record);

  /// The record as it stands, changes of this set included.
  [[nodiscard]] Result<std::optional<FolderRecord>> folder(const std::string& prefix);
  /// Makes missing records of `prefix` and of all folders above it; they exist since `started` (0: they only have numbers).
  [[nodiscard]] Result<FolderRecord> ensure_folder(const std::string& prefix, WallNanos started);
  void put_folder(const std::string& prefix, const FolderRecord& record);
  /// The root of a mount keeps its number.
  void remove_folder(const std::string& prefix, const FolderRecord& record);
  /// The folder and all below it, except what is newer than `started`.
  [[nodiscard]] Result<void> remove_subtree(const std::string& prefix, WallNanos started);

  /// Something of the folder is known from a request that began later.
  [[nodiscard]] static bool newer(const FolderRecord& record, WallNanos started) {
    return std::max({record.seen_at, record.listed_at, record.sealed_at}) > started;
  }

  /// After the commit `path` is known to be neither file nor folder.
  void absent(const std::string& path, WallNanos at) { absent_.emplace_back(path, at); }
  [[nodiscard]] Result<void> commit();
  [[nodiscard]] std::vector<Notice>& notices() { return notices_; }

 private:
  /// Keeps the memory of one set bounded when millions of keys are gone at once; what was collected is true by itself.
  [[nodiscard]] Result<void> commit_if_large();
  void touch(std::string_view path) { dirty_.emplace_back(path); }
  void notice(std::string_view path);

  void number_owner(Number number, bool is_folder, std::string_view key);

  Knowledge& knowledge_;
  WriterShared& shared_;
  io::KvBatch batch_;
  std::unordered_map<std::string, std::optional<FolderRecord>> folders_;
  std::vector<std::string> dirty_;
  std::vector<std::pair<std::string, WallNanos>> absent_;
  std::vector<std::string> came_;  // names that were not there before
  std::vector<Notice> notices_;
  std::int64_t files_added_ = 0;
  std::int64_t folders_added_ = 0;
};

}  // namespace thermo::catalog
