#include "io/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace thermo::io {
namespace {

class PosixFile final : public File {
 public:
  PosixFile(int fd, bool tmpfs, std::string path) : fd_(fd), tmpfs_(tmpfs), path_(std::move(path)) {}
  ~PosixFile() override { ::close(fd_); }
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> dst) override {
    std::size_t done = 0;
    while (done < dst.size()) {
      const ssize_t n = ::pread(fd_, dst.data() + done, dst.size() - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail(errno_error(errno, "read " + path_));
      if (n == 0) break;
      done += static_cast<std::size_t>(n);
    }
    return done;
  }

  Result<std::size_t> read_at_nowait(std::uint64_t offset, std::span<std::byte> dst) override {
    if (tmpfs_) return read_at(offset, dst);  // always in memory; tmpfs refuses RWF_NOWAIT
    while (true) {
      const iovec vec{dst.data(), dst.size()};
      const ssize_t n = ::preadv2(fd_, &vec, 1, static_cast<off_t>(offset), RWF_NOWAIT);
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EOPNOTSUPP) return fail(ErrorCode::kWouldWaitDevice);
      return fail(errno_error(errno, "read " + path_));
    }
  }

  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> src) override {
    std::size_t done = 0;
    while (done < src.size()) {
      const ssize_t n = ::pwrite(fd_, src.data() + done, src.size() - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail(errno_error(errno, "write " + path_));
      done += static_cast<std::size_t>(n);
    }
    return {};
  }

  Result<void> truncate(std::uint64_t size) override {
    if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) return fail(errno_error(errno, "truncate " + path_));
    return {};
  }

  Result<void> sync() override {
    if (::fdatasync(fd_) != 0) return fail(errno_error(errno, "sync " + path_));
    return {};
  }

  Result<void> punch_hole(std::uint64_t offset, std::uint64_t length) override {
    if (::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(length)) !=
        0) {
      return fail(errno_error(errno, "punch a hole in " + path_));
    }
    return {};
  }

  Result<std::uint64_t> size() override {
    TRY_ASSIGN(const struct stat st, status());
    return static_cast<std::uint64_t>(st.st_size);
  }

  Result<std::uint64_t> allocated() override {
    TRY_ASSIGN(const struct stat st, status());
    return static_cast<std::uint64_t>(st.st_blocks) * 512;
  }

  [[nodiscard]] int fd() const override { return fd_; }

 private:
  Result<struct stat> status() {
    struct stat st{};
    if (::fstat(fd_, &st) != 0) return fail(errno_error(errno, "stat " + path_));
    return st;
  }

  const int fd_;
  const bool tmpfs_;
  const std::string path_;
};

class PosixDisk final : public Disk {
 public:
  PosixDisk(std::string root, bool tmpfs) : root_(std::move(root)), tmpfs_(tmpfs) {}

  [[nodiscard]] const std::string& root() const override { return root_; }

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    const std::string full = absolute(path);
    int flags = O_CLOEXEC | (mode == OpenMode::kRead ? O_RDONLY : O_RDWR);
    if (mode == OpenMode::kCreate) flags |= O_CREAT;
    const int fd = ::open(full.c_str(), flags, 0640);
    if (fd < 0) return fail(errno_error(errno, "open " + full));
    return std::unique_ptr<File>(std::make_unique<PosixFile>(fd, tmpfs_, full));
  }

  Result<void> make_dirs(const std::string& path) override { return make_dirs_at(absolute(path)); }

  Result<void> remove(const std::string& path) override {
    const std::string full = absolute(path);
    if (::unlink(full.c_str()) != 0 && errno != ENOENT) return fail(errno_error(errno, "remove " + full));
    return {};
  }

  Result<void> rename(const std::string& from, const std::string& to) override {
    const std::string a = absolute(from);
    const std::string b = absolute(to);
    if (::rename(a.c_str(), b.c_str()) != 0) return fail(errno_error(errno, "rename " + a + " to " + b));
    return {};
  }

  Result<std::vector<std::string>> list(const std::string& path) override {
    const std::string full = absolute(path);
    DIR* dir = ::opendir(full.c_str());
    if (dir == nullptr) return fail(errno_error(errno, "list " + full));
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(dir)) {  // NOLINT(concurrency-mt-unsafe): one stream, one thread
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
      errno = 0;
    }
    const int err = errno;
    ::closedir(dir);
    if (err != 0) return fail(errno_error(err, "list " + full));
    return names;
  }

  Result<SpaceInfo> space() override {
    struct statvfs st{};
    if (::statvfs(root_.c_str(), &st) != 0) return fail(errno_error(errno, "statvfs " + root_));
    return SpaceInfo{static_cast<std::uint64_t>(st.f_blocks) * st.f_frsize,
                     static_cast<std::uint64_t>(st.f_bavail) * st.f_frsize};
  }

  static Result<void> make_dirs_at(const std::string& full) {
    // Every missing level with 0750: what the cache holds is readable by its owner and group only.
    for (std::size_t end = full.find('/', 1);; end = full.find('/', end + 1)) {
      const std::string part = full.substr(0, end);
      if (!part.empty() && ::mkdir(part.c_str(), 0750) != 0 && errno != EEXIST) {
        const int err = errno;
        std::error_code ignored;
        // A level above may exist and be read-only; only a missing one is an error.
        if (!std::filesystem::is_directory(part, ignored)) return fail(errno_error(err, "create the folder " + part));
      }
      if (end == std::string::npos) break;
    }
    std::error_code ec;
    if (!std::filesystem::is_directory(full, ec)) return fail(ErrorCode::kInvalidArgument, "'" + full + "' is not a folder");
    return {};
  }

 private:
  [[nodiscard]] std::string absolute(const std::string& path) const { return path.empty() ? root_ : root_ + "/" + path; }

  const std::string root_;
  const bool tmpfs_;
};

}  // namespace

Result<std::unique_ptr<Disk>> open_disk(const std::string& root) {
  std::error_code ec;
  const std::string full = std::filesystem::absolute(root, ec).lexically_normal().string();
  if (ec || full.empty()) return fail(ErrorCode::kInvalidArgument, "'" + root + "' is not a path of a folder");
  const std::string trimmed = full.size() > 1 && full.back() == '/' ? full.substr(0, full.size() - 1) : full;
  TRY(PosixDisk::make_dirs_at(trimmed));
  struct statfs st{};
  if (::statfs(trimmed.c_str(), &st) != 0) return fail(errno_error(errno, "statfs " + trimmed));
  return std::unique_ptr<Disk>(std::make_unique<PosixDisk>(trimmed, st.f_type == TMPFS_MAGIC));
}

}  // namespace thermo::io
