#include "store/file/file_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <thread>

#include "store/file/file_key.h"
#include "store/file/file_listing.h"
#include "store/file/file_meta.h"
#include "store/file/file_writer.h"

namespace thermo::store {
namespace {

using namespace file;  // NOLINT: the parts of this store

// Large enough that the fstat between pieces costs nothing, small enough to stop soon.
constexpr std::size_t kPiece = std::size_t{512} << 10;
constexpr std::size_t kMaxRemoved = 1000;

tl::unexpected<Error> no_such_key(const std::string& key) {
  return fail(Error(ErrorCode::kNotFound, "no such key '" + key + "'").with_http(404));
}

tl::unexpected<Error> changed(const std::string& key) {
  return fail(Error(ErrorCode::kPreconditionFailed, "'" + key + "' is no longer the version asked for").with_http(412));
}

bool says_absent(int err) { return err == ENOENT || err == ENOTDIR || err == ELOOP || err == ENAMETOOLONG; }

class FileStore final : public ObjectStore {
 public:
  explicit FileStore(const std::string& real_path) : root_(real_path == "/" ? "" : real_path), id_("file://" + real_path) {}

  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] Result<ObjectInfo> head(const RequestContext& ctx, const std::string& key) override;
  [[nodiscard]] Result<GetInfo> get_range(const RequestContext& ctx, const std::string& key, const std::string& if_match,
                                          std::uint64_t object_size, ByteRange range, BodySink& sink) override;

  [[nodiscard]] Result<ListPage> list_page(const RequestContext& ctx, const ListRequest& request) override {
    TRY(may_start(ctx));
    return list_folder_page(ctx, folders_, root_, request);
  }

  [[nodiscard]] Result<PutInfo> put(const RequestContext& ctx, const std::string& key, std::span<const std::byte> body,
                                    const PutOptions& options) override {
    TRY(may_start(ctx));
    return write_object(locks_, root_, key, body, options);
  }

  [[nodiscard]] Result<std::vector<RemoveFailure>> remove(const RequestContext& ctx,
                                                          const std::vector<std::string>& keys) override;

 private:
  [[nodiscard]] static Result<void> may_start(const RequestContext& ctx) {
    TRY(ctx.check(Clock::system()));
    if (!ctx.may_wait) return fail(ErrorCode::kWouldWaitStore);
    return {};
  }
  [[nodiscard]] Result<struct stat> status_of(const std::string& key) const;
  [[nodiscard]] Result<void> remove_one(const std::string& key);
  [[nodiscard]] std::string path_of(const std::string& key) const { return root_ + "/" + key; }

  const std::string root_;  // without '/' at its end
  const std::string id_;
  FolderCache folders_;
  KeyLocks locks_;
};

// What a key is, links followed; kNotFound for everything that is no object (sockets, devices, a folder without its '/').
Result<struct stat> FileStore::status_of(const std::string& key) const {
  TRY(check_key(key));
  struct stat st{};
  if (::stat(path_of(key).c_str(), &st) != 0) {
    const int err = errno;
    if (!says_absent(err)) return fail(errno_error(err, "stat '" + path_of(key) + "'"));
    TRY(check_root(root_));
    return no_such_key(key);
  }
  if (key.ends_with('/') ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode)) return no_such_key(key);
  return st;
}

Result<ObjectInfo> FileStore::head(const RequestContext& ctx, const std::string& key) {
  TRY(may_start(ctx));
  TRY_ASSIGN(const struct stat st, status_of(key));
  ObjectInfo info;
  info.key = key;
  info.mtime = nanos(st.st_mtim);
  if (S_ISDIR(st.st_mode)) {
    info.etag = folder_etag(st);
    return info;
  }
  info.size = static_cast<std::uint64_t>(st.st_size);
  info.etag = etag_of(st);
  read_meta(path_of(key), info);
  return info;
}

Result<GetInfo> FileStore::get_range(const RequestContext& ctx, const std::string& key, const std::string& if_match,
                                     std::uint64_t /*object_size*/, ByteRange range, BodySink& sink) {
  TRY(may_start(ctx));
  TRY_ASSIGN(const struct stat named, status_of(key));
  if (S_ISDIR(named.st_mode)) {
    if (!if_match.empty() && if_match != folder_etag(named)) return changed(key);
    if (range.offset != 0 || range.length != 0)
      return fail(Error(ErrorCode::kInvalidRange, "'" + key + "' has no bytes").with_http(416));
    return GetInfo{folder_etag(named), 0, nanos(named.st_mtim)};
  }
  // O_NONBLOCK: should a pipe have taken the name meanwhile, open does not hang.
  const Fd fd(::open(path_of(key).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.ok()) {
    if (says_absent(errno)) return no_such_key(key);
    return fail(errno_error(errno, "open '" + path_of(key) + "'"));
  }
  struct stat before{};
  if (::fstat(fd.get(), &before) != 0) return fail(errno_error(errno, "stat '" + path_of(key) + "'"));
  // A write within the same timer tick as the last one leaves the times, so the ETag, as they are: read only what is older than
  // that.
  while (const std::int64_t wait = unsettled_for(before)) {
    if (!if_match.empty() && etag_of(before) != if_match) return changed(key);
    TRY(ctx.check(Clock::system()));
    std::this_thread::sleep_for(Nanos(wait));
    if (::fstat(fd.get(), &before) != 0) return fail(errno_error(errno, "stat '" + path_of(key) + "'"));
  }
  if (!S_ISREG(before.st_mode)) return no_such_key(key);
  GetInfo info{etag_of(before), static_cast<std::uint64_t>(before.st_size), nanos(before.st_mtim)};
  if (!if_match.empty() && info.etag != if_match) return changed(key);
  if (range.offset > info.object_size || range.length > info.object_size - range.offset) {
    return fail(Error(ErrorCode::kInvalidRange, "'" + key + "': bytes " + std::to_string(range.offset) + "+" +
                                                    std::to_string(range.length) + " of a file of " +
                                                    std::to_string(info.object_size))
                    .with_http(416));
  }
  const std::size_t capacity = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, range.length));
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(capacity);
  for (std::uint64_t done = 0; done < range.length;) {
    TRY(ctx.check(Clock::system()));
    const std::size_t want = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, range.length - done));
    const ssize_t n = ::pread(fd.get(), buffer.get(), want, static_cast<off_t>(range.offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(errno_error(errno, "read '" + path_of(key) + "'"));
    struct stat after{};
    if (::fstat(fd.get(), &after) != 0) return fail(errno_error(errno, "stat '" + path_of(key) + "'"));
    // Only now are the bytes known to be of this version; before it goes to the sink.
    if (etag_of(after) != info.etag || n == 0) return changed(key);
    TRY(sink.write({buffer.get(), static_cast<std::size_t>(n)}));
    done += static_cast<std::uint64_t>(n);
  }
  return info;
}

Result<std::vector<RemoveFailure>> FileStore::remove(const RequestContext& ctx, const std::vector<std::string>& keys) {
  TRY(may_start(ctx));
  if (keys.size() > kMaxRemoved) {
    return fail(ErrorCode::kInvalidArgument, std::to_string(keys.size()) + " keys in one removal; the limit is 1000");
  }
  TRY(check_root(root_));
  std::vector<RemoveFailure> failures;
  for (const auto& key : keys) {
    TRY(ctx.check(Clock::system()));
    if (auto removed = remove_one(key); !removed) failures.push_back({key, removed.error()});
  }
  return failures;
}

Result<void> FileStore::remove_one(const std::string& key) {
  const auto st = status_of(key);
  if (!st) {
    if (st.error().code() == ErrorCode::kNotFound) return {};
    return fail(st.error());
  }
  const std::string path = path_of(key);
  if (S_ISDIR(st->st_mode)) {
    // The marker of a folder that holds something does not show: its removal changes nothing.
    if (::rmdir(path.c_str()) == 0 || errno == ENOTEMPTY || errno == EEXIST || errno == ENOENT) return {};
    return fail(errno_error(errno, "remove folder '" + path + "'"));
  }
  if (::unlink(path.c_str()) == 0 || errno == ENOENT || errno == EISDIR) return {};
  return fail(errno_error(errno, "remove '" + path + "'"));
}

}  // namespace

Result<ObjectStorePtr> make_file_store(const std::string& root) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(root.c_str(), nullptr), &std::free);
  struct stat st{};
  if (!real || ::stat(real.get(), &st) != 0 || !S_ISDIR(st.st_mode)) {
    return fail(ErrorCode::kInvalidArgument, "'" + root + "' is not an existing folder; make it first or correct the path");
  }
  return std::make_shared<FileStore>(real.get());
}

}  // namespace thermo::store
