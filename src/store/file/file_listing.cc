#include "store/file/file_listing.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/log.h"
#include "store/file/file_key.h"

namespace thermo::store::file {
namespace {

constexpr std::uint32_t kMaxListed = 1000;
constexpr std::string_view kTokenMark = "after:";  // so that a token is never mistaken for a key

struct Identity {
  dev_t device;
  ino_t inode;
  bool operator==(const Identity&) const = default;
};

Identity identity(const struct stat& st) { return {st.st_dev, st.st_ino}; }

bool is_gone(ErrorCode code) { return code == ErrorCode::kNotFound || code == ErrorCode::kNotDirectory; }

class Walk {
 public:
  Walk(const RequestContext& ctx, FolderCache& cache, const std::string& root, const ListRequest& request, std::string after)
      : ctx_(ctx),
        cache_(cache),
        root_(root),
        request_(request),
        after_(std::move(after)),
        limit_(std::min(request.max_keys, kMaxListed)) {}

  [[nodiscard]] Result<ListPage> run();

 private:
  [[nodiscard]] Result<void> folder(const std::string& prefix, bool asked_for);
  [[nodiscard]] Result<void> show_file(const std::string& key);
  void show_marker(const std::string& key, const struct stat& st);
  [[nodiscard]] bool room_for(const std::string& name);
  [[nodiscard]] bool leads_back(const std::string& key) const;
  [[nodiscard]] bool barren(const Folder& content, const std::string& prefix) const;

  const RequestContext& ctx_;
  FolderCache& cache_;
  const std::string& root_;
  const ListRequest& request_;
  const std::string after_;
  const std::size_t limit_;
  std::vector<Identity> ancestors_;
  std::string last_;
  ListPage page_;
};

Result<ListPage> Walk::run() {
  if (limit_ == 0) return page_;
  const std::size_t slash = request_.prefix.rfind('/');
  const std::string base = slash == std::string::npos ? "" : request_.prefix.substr(0, slash + 1);
  if (!base.empty() && !check_key(base)) return page_;  // no path can hold such a key: nothing below it
  // The folders above the base: a link inside must not lead back to one of them.
  for (std::size_t end = 0; end < base.size(); end = base.find('/', end) + 1) {
    struct stat st{};
    const std::string path = root_ + "/" + base.substr(0, end);
    if (::stat(path.c_str(), &st) != 0) break;  // folder() says why
    if (std::find(ancestors_.begin(), ancestors_.end(), identity(st)) != ancestors_.end()) return page_;
    ancestors_.push_back(identity(st));
  }
  TRY(folder(base, true));
  return std::move(page_);
}

Result<void> Walk::folder(const std::string& prefix, bool asked_for) {
  if (after_ > prefix && !after_.starts_with(prefix)) return {};  // all of it lies before
  const auto read = cache_.read(ctx_, root_ + "/" + prefix);
  if (!read) {
    if (is_gone(read.error().code())) return check_root(root_);
    if (asked_for || read.error().code() != ErrorCode::kAccessDenied) return fail(read.error());
    static log::RateLimit limit(std::chrono::minutes(1));
    std::uint64_t held = 0;
    if (limit.allow(held)) log::warn("{}; it is listed as an empty folder ({} more held back)", read.error().message(), held);
    struct stat st{};
    if (::stat((root_ + "/" + prefix).c_str(), &st) == 0) show_marker(prefix, st);
    return {};
  }
  const Folder& content = **read;
  if (std::find(ancestors_.begin(), ancestors_.end(), identity(content.status())) != ancestors_.end()) return {};
  ancestors_.push_back(identity(content.status()));
  if (barren(content, prefix)) {
    if (!prefix.empty()) show_marker(prefix, content.status());
    ancestors_.pop_back();
    return {};
  }
  // Seek: to the first name that the prefix allows, and to where `after_` points inside this folder.
  std::string_view from;
  if (request_.prefix.size() > prefix.size()) from = std::string_view(request_.prefix).substr(prefix.size());
  std::string start(from);
  if (after_.size() > prefix.size() && after_.starts_with(prefix)) {
    const std::string_view inside = std::string_view(after_).substr(prefix.size());
    // Up to and with the '/': the folder that `after_` lies in comes again, its names before `after_` do not.
    const std::string_view name =
        inside.substr(0, inside.find('/') == std::string_view::npos ? inside.size() : inside.find('/') + 1);
    if (name > start) start = name;
  }
  for (std::size_t i = content.lower_bound(start); i < content.size() && !page_.truncated; ++i) {
    const Folder::Child child = content.at(i);
    if (!from.empty() && !child.name.starts_with(from)) break;
    const std::string key = prefix + std::string(child.name);
    if (key.size() > kMaxKey) continue;  // no key can be that long
    if (i % 256 == 255) TRY(ctx_.check(Clock::system()));
    if (!child.folder()) {
      TRY(show_file(key));
    } else if (request_.delimiter.empty()) {
      TRY(folder(key, false));
    } else if (key > after_ && !(child.link && leads_back(key)) && room_for(key)) {
      page_.prefixes.push_back(key);
    }
  }
  ancestors_.pop_back();
  return {};
}

Result<void> Walk::show_file(const std::string& key) {
  if (key <= after_) return {};
  struct stat st{};
  if (::stat((root_ + "/" + key).c_str(), &st) != 0) {
    const int err = errno;
    if (err == ENOENT || err == ENOTDIR || err == ELOOP) return {};  // gone since the folder was read
    return fail(errno_error(err, "stat '" + root_ + "/" + key + "'"));
  }
  if (!S_ISREG(st.st_mode) || !room_for(key)) return {};
  ObjectInfo info;
  info.key = key;
  info.size = static_cast<std::uint64_t>(st.st_size);
  info.etag = etag_of(st);
  info.mtime = nanos(st.st_mtim);
  page_.objects.push_back(std::move(info));
  return {};
}

void Walk::show_marker(const std::string& key, const struct stat& st) {
  if (key <= after_ || !key.starts_with(request_.prefix) || !room_for(key)) return;
  ObjectInfo info;
  info.key = key;
  info.etag = folder_etag(st);
  info.mtime = nanos(st.st_mtim);
  page_.objects.push_back(std::move(info));
}

// Counts `name` onto the page, or marks the page truncated because it is full.
bool Walk::room_for(const std::string& name) {
  if (page_.objects.size() + page_.prefixes.size() == limit_) {
    page_.truncated = true;
    page_.continuation = std::string(kTokenMark) + last_;
    return false;
  }
  last_ = name;
  return true;
}

bool Walk::leads_back(const std::string& key) const {
  struct stat st{};
  if (::stat((root_ + "/" + key).c_str(), &st) != 0) return true;  // gone
  return std::find(ancestors_.begin(), ancestors_.end(), identity(st)) != ancestors_.end();
}

// True when the folder holds nothing that is shown: no names, or only links back up.
bool Walk::barren(const Folder& content, const std::string& prefix) const {
  for (std::size_t i = 0; i < content.size(); ++i) {
    const Folder::Child child = content.at(i);
    if (!child.folder() || !child.link || !leads_back(prefix + std::string(child.name))) return false;
  }
  return true;
}

}  // namespace

Result<ListPage> list_folder_page(const RequestContext& ctx, FolderCache& cache, const std::string& root,
                                  const ListRequest& request) {
  if (!request.delimiter.empty() && request.delimiter != "/") {
    return fail(ErrorCode::kInvalidArgument, "delimiter '" + request.delimiter + "': a folder store knows only '/'");
  }
  std::string after = request.start_after;
  if (!request.continuation.empty()) {
    if (!request.continuation.starts_with(kTokenMark)) {
      return fail(ErrorCode::kInvalidArgument, "the continuation token '" + request.continuation + "' is not of this store");
    }
    after = request.continuation.substr(kTokenMark.size());
  }
  return Walk(ctx, cache, root, request, std::move(after)).run();
}

}  // namespace thermo::store::file
