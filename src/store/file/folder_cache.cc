#include "store/file/folder_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "store/file/file_key.h"

namespace thermo::store::file {
namespace {

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

bool same_state(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && nanos(a.st_mtim) == nanos(b.st_mtim) &&
         nanos(a.st_ctim) == nanos(b.st_ctim);
}

enum class Kind : std::uint8_t { kFile, kFolder };

// What a name is after following links; nullopt for what is not shown. Some file systems give no type: then it is asked for.
std::optional<Kind> kind_of(int dir, const struct dirent& entry) {
  if (entry.d_type == DT_REG) return Kind::kFile;
  if (entry.d_type == DT_DIR) return Kind::kFolder;
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return std::nullopt;
  struct stat st{};
  if (::fstatat(dir, entry.d_name, &st, 0) != 0) return std::nullopt;  // dangling, or a ring of links
  if (S_ISREG(st.st_mode)) return Kind::kFile;
  if (S_ISDIR(st.st_mode)) return Kind::kFolder;
  return std::nullopt;
}

}  // namespace

std::size_t Folder::lower_bound(std::string_view name) const {
  const std::string_view arena(arena_);
  const auto it = std::lower_bound(items_.begin(), items_.end(), name, [&](const Item& item, std::string_view wanted) {
    return arena.substr(item.offset, item.length) < wanted;
  });
  return static_cast<std::size_t>(it - items_.begin());
}

Result<std::shared_ptr<const Folder>> FolderCache::read(const RequestContext& ctx, const std::string& path) {
  TRY(ctx.check(Clock::system()));
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.ok()) {
    const int err = errno;
    if (err == ENOTDIR) return fail(ErrorCode::kNotDirectory, "'" + path + "' is not a folder");
    if (err == ELOOP || err == ENAMETOOLONG) return fail(ErrorCode::kNotFound, "no folder '" + path + "'");
    return fail(errno_error(err, "open folder '" + path + "'"));
  }
  auto folder = std::make_shared<Folder>();
  if (::fstat(fd.get(), &folder->status_) != 0) return fail(errno_error(errno, "stat folder '" + path + "'"));
  // Without the right to search it, its names could be read but nothing said of them.
  if (::faccessat(fd.get(), ".", X_OK, AT_EACCESS) != 0) return fail(errno_error(errno, "search folder '" + path + "'"));
  if (auto known = find(folder->status_)) return known;
  const bool settled = unsettled_for(folder->status_) == 0;  // else a change in this tick would leave the same times behind

  const int raw = fd.get();
  const std::unique_ptr<DIR, CloseDir> dir(::fdopendir(raw));
  if (!dir) return fail(errno_error(errno, "read folder '" + path + "'"));
  fd.release();  // the DIR owns it now
  while (true) {
    errno = 0;
    const struct dirent* entry = ::readdir(dir.get());  // one DIR per call: safe in threads
    if (entry == nullptr) {
      if (errno != 0) return fail(errno_error(errno, "read folder '" + path + "'"));
      break;
    }
    const std::string_view name(entry->d_name);
    if (name == "." || name == ".." || name.starts_with(kTemporary)) continue;
    const auto kind = kind_of(raw, *entry);
    if (!kind) continue;
    const std::size_t offset = folder->arena_.size();
    folder->arena_ += name;
    if (*kind == Kind::kFolder) folder->arena_ += '/';
    folder->items_.push_back(
        {offset, static_cast<std::uint16_t>(folder->arena_.size() - offset), entry->d_type != DT_REG && entry->d_type != DT_DIR});
    if (folder->items_.size() % 1024 == 0) TRY(ctx.check(Clock::system()));
  }
  const std::string_view arena(folder->arena_);
  std::sort(folder->items_.begin(), folder->items_.end(), [&](const Folder::Item& a, const Folder::Item& b) {
    return arena.substr(a.offset, a.length) < arena.substr(b.offset, b.length);
  });
  if (settled && folder->size() >= kMinChildren) keep(folder);
  return std::shared_ptr<const Folder>(std::move(folder));
}

std::shared_ptr<const Folder> FolderCache::find(const struct stat& st) {
  MutexLock lock(mutex_);
  const auto it = std::find_if(kept_.begin(), kept_.end(), [&](const auto& folder) { return same_state(folder->status(), st); });
  if (it == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, it);
  return kept_.front();
}

void FolderCache::keep(const std::shared_ptr<const Folder>& folder) {
  if (folder->memory() > kMaxBytes) return;
  std::list<std::shared_ptr<const Folder>> dropped;  // freed after the lock
  MutexLock lock(mutex_);
  const auto older = std::find_if(kept_.begin(), kept_.end(), [&](const auto& other) {
    return other->status().st_dev == folder->status().st_dev && other->status().st_ino == folder->status().st_ino;
  });
  if (older != kept_.end()) {
    bytes_ -= (*older)->memory();
    dropped.splice(dropped.end(), kept_, older);
  }
  kept_.push_front(folder);
  bytes_ += folder->memory();
  while (bytes_ > kMaxBytes) {
    bytes_ -= kept_.back()->memory();
    dropped.splice(dropped.end(), kept_, std::prev(kept_.end()));
  }
}

}  // namespace thermo::store::file
