#include "store/file/file_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/rng.h"
#include "store/file/file_key.h"
#include "store/file/file_meta.h"

namespace thermo::store::file {
namespace {

tl::unexpected<Error> precondition(const std::string& key, std::string_view why) {
  return fail(Error(ErrorCode::kPreconditionFailed, "'" + key + "': " + std::string(why)).with_http(412));
}

Result<void> sync_folder(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.ok() || ::fsync(fd.get()) != 0) return fail(errno_error(errno, "sync folder '" + path + "'"));
  return {};
}

// Makes every folder of `key` up to its last '/'. Each new name is made durable in its parent.
Result<void> make_folders(const std::string& root, const std::string& key) {
  for (std::size_t slash = key.find('/'); slash != std::string::npos; slash = key.find('/', slash + 1)) {
    const std::string path = root + "/" + key.substr(0, slash);
    if (::mkdir(path.c_str(), 0777) == 0) {
      TRY(sync_folder(path.substr(0, path.rfind('/') + 1)));
      continue;
    }
    const int err = errno;
    struct stat st{};
    if (err == EEXIST && ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) continue;
    if (err == EEXIST || err == ENOTDIR)
      return fail(ErrorCode::kNotDirectory, "cannot write '" + key + "': '" + path + "' is a file");
    if (err == ENAMETOOLONG)
      return fail(ErrorCode::kNameTooLong, "cannot write '" + key + "': a part of it is too long for a file name");
    if (err == ENOENT) TRY(check_root(root));
    return fail(errno_error(err, "make folder '" + path + "'"));
  }
  return {};
}

Result<void> write_all(int fd, std::span<const std::byte> body, const std::string& path) {
  for (std::size_t done = 0; done < body.size();) {
    const ssize_t n =
        ::pwrite(fd, body.data() + done, std::min(body.size() - done, std::size_t{1} << 30), static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail(errno_error(n == 0 ? ENOSPC : errno, "write '" + path + "'"));
    done += static_cast<std::size_t>(n);
  }
  return {};
}

Result<void> check_if_match(const std::string& path, const std::string& key, const std::string& if_match) {
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return fail(Error(ErrorCode::kNotFound, "no such key '" + key + "'").with_http(404));
    return fail(errno_error(errno, "stat '" + path + "'"));
  }
  if (etag_of(st) != if_match) return precondition(key, "the object is another version now");
  return {};
}

// Gives the finished file its name. RENAME_NOREPLACE is unknown to some file systems; link() refuses an existing name everywhere.
int give_name(const std::string& temporary, const std::string& path, bool must_be_new) {
  if (!must_be_new) return ::rename(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (::link(temporary.c_str(), path.c_str()) != 0) return errno;
  return ::unlink(temporary.c_str()) == 0 ? 0 : errno;
}

Result<PutInfo> make_marker(const std::string& root, const std::string& key, bool must_be_new) {
  const std::string path = root + "/" + key;
  struct stat st{};
  const bool existed = ::stat(path.c_str(), &st) == 0;
  if (existed && must_be_new) return precondition(key, "the folder exists already");
  TRY(make_folders(root, key));
  if (::stat(path.c_str(), &st) != 0) return fail(errno_error(errno, "stat '" + path + "'"));
  return PutInfo{folder_etag(st)};
}

}  // namespace

Result<PutInfo> write_object(KeyLocks& locks, const std::string& root, const std::string& key, std::span<const std::byte> body,
                             const PutOptions& options) {
  TRY(check_key(key));
  const KeyLocks::Guard guard(locks, key);
  const std::string path = root + "/" + key;
  if (!options.if_match.empty()) TRY(check_if_match(path, key, options.if_match));
  if (key.ends_with('/')) {
    if (!body.empty()) return fail(ErrorCode::kInvalidArgument, "key '" + key + "' names a folder: it can hold no bytes");
    return make_marker(root, key, options.if_none_match);
  }
  TRY(make_folders(root, key));
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  const std::string temporary = folder + std::string(kTemporary) + Rng::from_os().hex(16);
  const Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd.ok()) {
    const int err = errno;
    if (err == ENOENT) TRY(check_root(root));
    return fail(errno_error(err, "create a file in '" + folder + "'"));
  }
  const auto finish = [&]() -> Result<void> {
    TRY(write_all(fd.get(), body, temporary));
    TRY(write_meta(fd.get(), path, options));
    if (::fsync(fd.get()) != 0) return fail(errno_error(errno, "sync '" + temporary + "'"));
    const int err = give_name(temporary, path, options.if_none_match);
    if (err == 0) return {};
    if (err == EEXIST) return precondition(key, "the key exists already");
    if (err == EISDIR) return fail(ErrorCode::kIsDirectory, "cannot write '" + key + "': it is a folder");
    if (err == ENAMETOOLONG)
      return fail(ErrorCode::kNameTooLong, "cannot write '" + key + "': its last part is too long for a file name");
    return fail(errno_error(err, "rename to '" + path + "'"));
  };
  if (auto done = finish(); !done) {
    ::unlink(temporary.c_str());
    return fail(std::move(done).error());
  }
  struct stat st{};  // after the rename: it changes ctime, which is part of the ETag
  if (::fstat(fd.get(), &st) != 0) return fail(errno_error(errno, "stat '" + path + "'"));
  TRY(sync_folder(folder));
  return PutInfo{etag_of(st)};
}

}  // namespace thermo::store::file
