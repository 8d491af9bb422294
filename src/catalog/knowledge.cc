#include "catalog/knowledge.h"

#include <algorithm>
#include <utility>

namespace thermo::catalog {

Knowledge::Knowledge(io::KvStore& kv, StoreNumber store, std::string store_id, std::size_t names_in_memory)
    : kv_(kv), store_(store), store_id_(std::move(store_id)), memory_(names_in_memory) {}

File Knowledge::to_file(std::string_view key, const FileRecord& record) const {
  File file;
  file.key = key;
  file.size = record.size;
  file.etag = record.etag;
  file.mtime = record.mtime;
  file.version = store::version_id(store_id_, key, record.etag, record.size);
  file.number = record.number;
  file.generation = record.generation;
  file.ino = record.ino;
  return file;
}

Folder Knowledge::to_folder(std::string_view prefix, const FolderRecord& record) {
  return {std::string(prefix), record.number, record.ino, record.first_seen};
}

Result<KnownNamePtr> Knowledge::name(std::string_view path, bool may_wait) {
  if (auto known = memory_.find(path)) return known;
  const auto epoch = memory_.epoch();
  auto known = std::make_shared<KnownName>();
  if (!path.empty()) {
    TRY_ASSIGN(const auto bytes, kv_.get(file_key(store_, path), may_wait));
    if (bytes) {
      TRY_ASSIGN(const auto record, decode_file(*bytes));
      known->file = to_file(path, record);
      known->file_checked = record.checked_at;
      known->file_alone = record.alone;
    }
  }
  const std::string prefix = path.empty() ? std::string() : std::string(path) + "/";
  TRY_ASSIGN(const auto bytes, kv_.get(folder_key(store_, prefix), may_wait));
  if (bytes) {
    TRY_ASSIGN(const auto record, decode_folder(*bytes));
    known->folder = to_folder(prefix, record);
    known->folder_seen = record.seen_at;
    known->listed_at = record.listed_at;
    known->sealed_at = record.sealed_at;
    known->pages = record.pages;
  }
  memory_.insert(path, known, epoch);
  return known;
}

Result<Knowledge::Dated> Knowledge::dated_name(std::string_view path, std::string_view root, bool may_wait) {
  // The folders' dates before the name: a name that is newer than its date does no harm, an older one would be vouched for by a
  // listing that knew better.
  TRY_ASSIGN(WallNanos since, vouched_since(parent_prefix(path), root, may_wait));
  TRY_ASSIGN(auto known, name(path, may_wait));
  if (known->folder_exists()) since = std::max(since, known->folder_seen);
  else if (known->file) since = std::max(since, known->file_alone ? known->file_checked : 0);
  else since = std::max(since, known->absent_at);
  return Dated{std::move(known), since > floors_.for_name(path) ? since : 0};
}

Result<WallNanos> Knowledge::listing_since(std::string_view prefix, std::string_view root, bool may_wait) {
  TRY_ASSIGN(const auto since, vouched_since(prefix, root, may_wait));
  return since > floors_.for_listing(prefix) ? since : 0;
}

Result<WallNanos> Knowledge::vouched_since(std::string_view prefix, std::string_view root, bool may_wait) {
  WallNanos since = 0;
  bool direct = true;
  for (std::string_view at = prefix;; at = parent_prefix(at)) {
    TRY_ASSIGN(const auto folder, name(folder_path(at), may_wait));
    since = std::max(since, folder->sealed_at);
    if (std::exchange(direct, false)) since = std::max(since, folder->listed_at);
    if (at.size() <= root.size()) break;
  }
  return since;
}

void Knowledge::add_root(const std::string& prefix) {
  MutexLock lock(roots_mutex_);
  roots_.insert(prefix);
}

bool Knowledge::is_root(std::string_view prefix) const {
  MutexLock lock(roots_mutex_);
  return prefix.empty() || roots_.contains(prefix);
}

Result<Entry> Knowledge::by_number(Number number, bool may_wait) {
  if (const auto path = memory_.path_of(number)) {
    TRY_ASSIGN(const auto known, name(*path, may_wait));
    if (known->file && known->file->number == number) return Entry(*known->file);
    if (known->folder && known->folder->number == number) return Entry(*known->folder);
  }
  const auto stale = [&] { return fail(ErrorCode::kStale, "file number " + std::to_string(number) + " is not known any more"); };
  TRY_ASSIGN(const auto bytes, kv_.get(number_key(number), may_wait));
  if (!bytes) return stale();
  TRY_ASSIGN(const auto owner, decode_owner(*bytes));
  if (owner.store != store_) return stale();
  TRY_ASSIGN(const auto known, name(owner.is_folder ? folder_path(owner.key) : owner.key, may_wait));
  if (!owner.is_folder && known->file && known->file->number == number) return Entry(*known->file);
  if (owner.is_folder && known->folder && known->folder->number == number) return Entry(*known->folder);
  return stale();
}

}  // namespace thermo::catalog
