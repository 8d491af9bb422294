#include "catalog/change_set.h"

#include <utility>

namespace thermo::catalog {
namespace {

constexpr std::size_t kLargeBatch = 100'000;
constexpr std::uint32_t kLastGeneration = (1u << 20) - 1;

}  // namespace

void ChangeSet::number_owner(Number number, bool is_folder, std::string_view key) {
  batch_.put(number_key(number), encode(Owner{knowledge_.store(), is_folder, std::string(key)}));
}

void ChangeSet::notice(std::string_view path) {
  notices_.push_back({std::string(parent_prefix(path)), std::string(base_name(path))});
}

Result<void> ChangeSet::add_file(const store::ObjectInfo& info, const Look& look) {
  FileRecord record;
  TRY_ASSIGN(record.number, shared_.numbers.next());
  const auto version = store::version_id(knowledge_.store_id(), info.key, info.etag, info.size);
  record.ino = file_ino(knowledge_.store_id(), info.key, version);
  record.size = info.size;
  record.mtime = info.mtime;
  record.etag = info.etag;
  record.storage_class = info.storage_class;
  record.checked_at = look.started;
  record.alone = look.alone;
  batch_.put(file_key(knowledge_.store(), info.key), encode(record));
  number_owner(record.number, false, info.key);
  came_.emplace_back(info.key);
  touch(info.key);
  ++files_added_;
  return commit_if_large();
}

Result<void> ChangeSet::update_file(const store::ObjectInfo& info, FileRecord record, const Look& look, bool note) {
  const bool same_version = record.etag == info.etag && record.size == info.size;
  if (same_version && record.mtime == info.mtime && record.storage_class == info.storage_class && !note) return {};
  if (!same_version) {
    if (record.generation >= kLastGeneration) {
      // Out of generations: a new number keeps (number, generation) unique.
      batch_.remove(number_key(record.number));
      TRY_ASSIGN(record.number, shared_.numbers.next());
      number_owner(record.number, false, info.key);
      record.generation = 0;
    }
    ++record.generation;
    const auto version = store::version_id(knowledge_.store_id(), info.key, info.etag, info.size);
    record.ino = file_ino(knowledge_.store_id(), info.key, version);
    notice(info.key);
  }
  record.size = info.size;
  record.etag = info.etag;
  record.mtime = info.mtime;
  record.storage_class = info.storage_class;
  record.checked_at = look.started;
  record.alone = look.alone;
  batch_.put(file_key(knowledge_.store(), info.key), encode(record));
  touch(info.key);
  return {};
}

Result<void> ChangeSet::remove_file(std::string_view key, const FileRecord& record) {
  batch_.remove(file_key(knowledge_.store(), key));
  batch_.remove(number_key(record.number));
  notice(key);
  touch(key);
  --files_added_;
  return commit_if_large();
}

Result<std::optional<FolderRecord>> ChangeSet::folder(const std::string& prefix) {
  if (const auto it = folders_.find(prefix); it != folders_.end()) return it->second;
  TRY_ASSIGN(const auto bytes, knowledge_.kv().get(folder_key(knowledge_.store(), prefix)));
  if (!bytes) return std::optional<FolderRecord>();
  TRY_ASSIGN(auto record, decode_folder(*bytes));
  return std::optional<FolderRecord>(record);
}

Result<FolderRecord> ChangeSet::ensure_folder(const std::string& prefix, WallNanos started) {
  TRY_ASSIGN(const auto existing, folder(prefix));
  if (existing && (existing->exists() || started == 0)) return *existing;
  if (!prefix.empty()) TRY(ensure_folder(std::string(parent_prefix(prefix)), started));
  FolderRecord record;
  if (existing) {
    record = *existing;
  } else {
    TRY_ASSIGN(record.number, shared_.numbers.next());
    record.ino = folder_ino(knowledge_.store_id(), prefix);
    record.first_seen = shared_.clock.wall();
    number_owner(record.number, true, prefix);
    ++folders_added_;
  }
  record.seen_at = started;
  if (started == 0) {
    put_folder(prefix, record);
    return record;
  }
  came_.emplace_back(folder_path(prefix));
  if (!prefix.empty()) {
    // A file of this name is hidden from now on; a listing may have shown it, so memory alone does not tell.
    TRY_ASSIGN(const auto file, knowledge_.kv().get(file_key(knowledge_.store(), folder_path(prefix))));
    if (file) notice(folder_path(prefix));
  }
  put_folder(prefix, record);
  return record;
}

void ChangeSet::put_folder(const std::string& prefix, const FolderRecord& record) {
  folders_[prefix] = record;
  touch(folder_path(prefix));
}

void ChangeSet::remove_folder(const std::string& prefix, const FolderRecord& record) {
  if (record.exists() && !prefix.empty()) notice(prefix);
  if (knowledge_.is_root(prefix)) {
    FolderRecord numbered = record;
    numbered.seen_at = numbered.listed_at = numbered.sealed_at = 0;
    return put_folder(prefix, numbered);
  }
  folders_[prefix] = std::nullopt;
  batch_.remove(number_key(record.number));
  touch(folder_path(prefix));
  --folders_added_;
}

Result<void> ChangeSet::remove_subtree(const std::string& prefix, WallNanos started) {
  Result<void> outcome;
  const std::string files = file_key(knowledge_.store(), prefix);
  TRY(knowledge_.kv().scan(files, [&](std::string_view key, std::string_view value, io::KvStore::Cursor&) {
    if (!key.starts_with(files)) return false;
    const auto record = decode_file(value);
    if (record && record->checked_at > started) return true;
    outcome = remove_file(key.substr(kStoreHeader), record ? *record : FileRecord{});
    return outcome.has_value();
  }));
  TRY(outcome);
  const std::string folders = folder_key(knowledge_.store(), prefix);
  TRY(knowledge_.kv().scan(folders, [&](std::string_view key, std::string_view value, io::KvStore::Cursor&) {
    if (!key.starts_with(folders)) return false;
    const auto record = decode_folder(value);
    if (record && newer(*record, started)) return true;
    remove_folder(std::string(key.substr(kStoreHeader)), record ? *record : FolderRecord{});
    return true;
  }));
  return {};
}

Result<void> ChangeSet::commit_if_large() {
  if (batch_.size() < kLargeBatch) return {};
  return commit();
}

Result<void> ChangeSet::commit() {
  for (const auto& [prefix, record] : folders_) {
    const auto key = folder_key(knowledge_.store(), prefix);
    if (record) batch_.put(key, encode(*record));
    else batch_.remove(key);
  }
  if (batch_.empty() && absent_.empty()) return {};
  auto& memory = knowledge_.memory();
  if (!batch_.empty()) batch_.put(meta_key("clock"), encode(shared_.stamps.mark()));
  memory.begin_change();
  const auto written = batch_.empty() ? Result<void>() : knowledge_.kv().write(batch_);
  for (const auto& path : dirty_) memory.drop(path);
  if (written) {
    for (const auto& [path, at] : absent_) {
      auto known = std::make_shared<KnownName>();
      known->absent_at = at;
      memory.put(path, std::move(known));
    }
    shared_.files += files_added_;
    shared_.folders += folders_added_;
  }
  memory.end_change();
  // After the write: whoever was told before is found here, whoever asks later sees what was written.
  for (const auto& path : came_) {
    if (!path.empty() && knowledge_.told_absent().contains(path)) notice(path);
  }
  batch_ = {};
  folders_.clear();
  dirty_.clear();
  absent_.clear();
  came_.clear();
  files_added_ = folders_added_ = 0;
  return written;
}

}  // namespace thermo::catalog
