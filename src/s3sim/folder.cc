// Folder mode: sub-folders are buckets, files are objects under their natural paths. Bytes leave by sendfile.

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/mutex.h"
#include "s3sim/backend.h"

namespace thermo::s3sim {
namespace {

/// Unfinished uploads; the name is no part of any listing.
constexpr std::string_view kTemporary = ".s3sim-upload-";

ObjectPtr describe(const struct stat& st, std::shared_ptr<const OpenFile> file) {
  Object object;
  object.size = static_cast<std::uint64_t>(st.st_size);
  object.modified = static_cast<WallNanos>(st.st_mtim.tv_sec) * 1'000'000'000 + st.st_mtim.tv_nsec;
  object.etag = fmt::format("\"{:x}-{:x}-{:x}\"", object.modified, object.size, static_cast<std::uint64_t>(st.st_ino));
  object.file = std::move(file);
  return std::make_shared<const Object>(std::move(object));
}

/// Can a file have this path? What cannot is a key that does not exist.
bool natural(std::string_view key) {
  if (key.empty() || key.find('\0') != std::string_view::npos || key.starts_with('/') || key.ends_with('/')) return false;
  while (!key.empty()) {
    const std::size_t slash = key.find('/');
    const std::string_view part = key.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.starts_with(kTemporary)) return false;
    key = slash == std::string_view::npos ? std::string_view() : key.substr(slash + 1);
  }
  return true;
}

/// Walks a tree in S3 order: a folder sorts as its name with the slash, so `a-b` comes before `a/`, `a0` after.
class TreeCursor final : public KeyCursor {
 public:
  explicit TreeCursor(std::string root) : root_(std::move(root)) {}

  void seek(const std::string& key) override {
    levels_.clear();
    open_level("", key);
    settle(key);
  }
  void next() override {
    ++levels_.back().at;
    settle("");
  }
  bool valid() const override { return !levels_.empty(); }
  const std::string& key() const override { return key_; }
  ObjectPtr object() const override {
    struct stat st{};
    // A file that goes while it is listed is shown as empty: the listing is of a moment before.
    (void)::stat((root_ + "/" + key_).c_str(), &st);
    return describe(st, nullptr);
  }

 private:
  struct Level {
    std::string prefix;              ///< with the slash
    std::vector<std::string> names;  ///< folders end with '/'
    std::size_t at = 0;
  };

  /// Names of a folder that may hold keys >= `from`.
  void open_level(const std::string& prefix, const std::string& from) {
    Level level;
    level.prefix = prefix;
    const std::string path = root_ + "/" + prefix;
    DIR* dir = ::opendir(path.c_str());
    if (!dir) return;
    while (const dirent* entry = ::readdir(dir)) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == ".." || name.starts_with(kTemporary)) continue;
      bool folder = entry->d_type == DT_DIR;
      bool plain = entry->d_type == DT_REG;
      if (entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN) {
        struct stat st{};
        if (::stat((path + entry->d_name).c_str(), &st) != 0) continue;
        folder = S_ISDIR(st.st_mode);
        plain = S_ISREG(st.st_mode);
      }
      if (!folder && !plain) continue;
      std::string full = folder ? std::string(name) + "/" : std::string(name);
      // A folder before `from` still matters when `from` lies inside it.
      const std::string key = prefix + full;
      if (key < from && !(folder && from.starts_with(key))) continue;
      level.names.push_back(std::move(full));
    }
    ::closedir(dir);
    std::sort(level.names.begin(), level.names.end());
    levels_.push_back(std::move(level));
  }

  /// Down to the first file from where the cursor stands.
  void settle(const std::string& from) {
    while (!levels_.empty()) {
      Level& level = levels_.back();
      if (level.at == level.names.size()) {
        levels_.pop_back();
        if (!levels_.empty()) ++levels_.back().at;
        continue;
      }
      std::string key = level.prefix + level.names[level.at];
      if (!key.ends_with('/')) {
        key_ = std::move(key);
        return;
      }
      const std::size_t depth = levels_.size();
      open_level(key, from);
      if (levels_.size() == depth) ++levels_.back().at;  // not readable
    }
  }

  const std::string root_;
  std::vector<Level> levels_;
  std::string key_;
};

class FolderBackend final : public Backend {
 public:
  explicit FolderBackend(std::string folder) : folder_(std::move(folder)) {}

  std::vector<BucketInfo> buckets() override {
    std::vector<BucketInfo> out;
    DIR* dir = ::opendir(folder_.c_str());
    if (!dir) return out;
    while (const dirent* entry = ::readdir(dir)) {
      struct stat st{};
      if (entry->d_name[0] == '.' || ::stat((folder_ + "/" + entry->d_name).c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) continue;
      out.push_back({entry->d_name, static_cast<WallNanos>(st.st_mtim.tv_sec) * 1'000'000'000});
    }
    ::closedir(dir);
    std::sort(out.begin(), out.end(), [](const BucketInfo& a, const BucketInfo& b) { return a.name < b.name; });
    return out;
  }

  bool has_bucket(const std::string& bucket) override {
    struct stat st{};
    return valid_bucket(bucket) && ::stat((folder_ + "/" + bucket).c_str(), &st) == 0 && S_ISDIR(st.st_mode);
  }

  S3Result<void> create_bucket(const std::string& bucket) override {
    if (!valid_bucket(bucket)) return refuse(400, "InvalidBucketName", "The specified bucket is not valid.");
    if (::mkdir((folder_ + "/" + bucket).c_str(), 0755) == 0) return {};
    if (errno == EEXIST)
      return refuse(409, "BucketAlreadyOwnedByYou",
                    "Your previous request to create the named bucket succeeded and you already own it.");
    return refuse(500, "InternalError", fmt::format("mkdir: {}", std::strerror(errno)));
  }

  S3Result<void> remove_bucket(const std::string& bucket) override {
    if (!has_bucket(bucket)) return tl::unexpected<S3Error>(no_such_bucket(bucket));
    if (::rmdir((folder_ + "/" + bucket).c_str()) == 0) return {};
    return refuse(409, "BucketNotEmpty", "The bucket you tried to delete is not empty");
  }

  S3Result<ObjectPtr> find(const std::string& bucket, const std::string& key, bool /*with_body*/) override {
    if (!has_bucket(bucket)) return tl::unexpected<S3Error>(no_such_bucket(bucket));
    if (!natural(key)) return tl::unexpected<S3Error>(no_such_key(key));
    const int fd = ::open(path(bucket, key).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st{};
    if (fd < 0 && errno == EACCES) return refuse(403, "AccessDenied", "Access Denied");
    if (fd < 0) return tl::unexpected<S3Error>(no_such_key(key));
    auto file = std::make_shared<const OpenFile>(fd);
    if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return tl::unexpected<S3Error>(no_such_key(key));
    return describe(st, std::move(file));
  }

  S3Result<ObjectPtr> put(const std::string& bucket, const std::string& key, Object object,
                          const WriteCondition& condition) override {
    if (!natural(key))
      return refuse(400, "InvalidArgument", "Folder mode keeps keys as paths of plain files; use --memory for other keys");
    const std::string temporary = fmt::format("{}/{}/{}{}", folder_, bucket, kTemporary, next_id());
    if (const int err = write_file(temporary, *object.data); err != 0)
      return refuse(500, "InternalError", fmt::format("write: {}", std::strerror(err)));
    // The lock makes check and rename one step; both are metadata of a local folder.
    const auto stored = commit(bucket, key, temporary, condition);
    if (!stored) ::unlink(temporary.c_str());
    return stored;
  }

  S3Result<void> remove(const std::string& bucket, const std::string& key, const WriteCondition& condition) override {
    const auto current = find(bucket, key, false);
    if (!current && current.error().code != "NoSuchKey") return tl::unexpected<S3Error>(current.error());
    S3_TRY(check_condition(condition, current.value_or(nullptr), key));
    if (!current) return {};
    if (::unlink(path(bucket, key).c_str()) != 0 && errno != ENOENT)
      return refuse(403, "AccessDenied", fmt::format("unlink: {}", std::strerror(errno)));
    // A folder that became empty holds no key any more.
    std::string parent = key;
    while (true) {
      const std::size_t slash = parent.rfind('/');
      if (slash == std::string::npos) return {};
      parent.resize(slash);
      if (::rmdir(path(bucket, parent).c_str()) != 0) return {};
    }
  }

  S3Result<ListPage> list(const std::string& bucket, const ListQuery& query, Nanos /*stale_by*/) override {
    if (!has_bucket(bucket)) return tl::unexpected<S3Error>(no_such_bucket(bucket));
    TreeCursor cursor(folder_ + "/" + bucket);
    return list_page(cursor, query);
  }

 private:
  [[nodiscard]] static bool valid_bucket(std::string_view bucket) {
    return !bucket.empty() && bucket.front() != '.' && bucket.find('/') == std::string_view::npos &&
           bucket.find('\0') == std::string_view::npos;
  }
  [[nodiscard]] std::string path(const std::string& bucket, const std::string& key) const {
    return folder_ + "/" + bucket + "/" + key;
  }

  [[nodiscard]] std::uint64_t next_id() { return ids_.fetch_add(1) + (static_cast<std::uint64_t>(::getpid()) << 32); }

  /// errno, 0 = written.
  [[nodiscard]] static int write_file(const std::string& to, std::string_view data) {
    const int fd = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) return errno;
    int err = 0;
    while (!data.empty() && err == 0) {
      const ssize_t n = ::write(fd, data.data(), data.size());
      if (n < 0 && errno != EINTR) err = errno;
      if (n > 0) data.remove_prefix(static_cast<std::size_t>(n));
    }
    if (::close(fd) != 0 && err == 0) err = errno;
    if (err != 0) ::unlink(to.c_str());
    return err;
  }

  [[nodiscard]] S3Result<ObjectPtr> commit(const std::string& bucket, const std::string& key, const std::string& temporary,
                                           const WriteCondition& condition) {
    MutexLock lock(mutex_);
    auto current = find(bucket, key, false);
    if (!current && current.error().code != "NoSuchKey") return current;
    S3_TRY(check_condition(condition, current.value_or(nullptr), key));
    for (std::size_t slash = key.find('/'); slash != std::string::npos; slash = key.find('/', slash + 1)) {
      ::mkdir(path(bucket, key.substr(0, slash)).c_str(), 0755);
    }
    if (::rename(temporary.c_str(), path(bucket, key).c_str()) != 0)
      return refuse(409, "ObjectParentIsFile",
                    fmt::format("Folder mode cannot hold this key beside another: {}", std::strerror(errno)));
    return find(bucket, key, false);
  }

  const std::string folder_;
  std::atomic<std::uint64_t> ids_{1};
  Mutex mutex_{LockRank::kStore, "s3sim folder"};
};

}  // namespace

std::unique_ptr<Backend> make_folder_backend(std::string folder) { return std::make_unique<FolderBackend>(std::move(folder)); }

}  // namespace thermo::s3sim
