#pragma once
// A disk that fails as it is told, in front of a real one.

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "base/rng.h"
#include "io/file.h"

namespace thermo::cache::testing {

/// What goes wrong; shared by a disk and its files. Only object files and sidecars are affected, and the probe file for writes.
struct Faults {
  std::atomic<int> write_errno{0};                 ///< every write, create and truncate fails with it
  std::atomic<int> read_error_percent{0};          ///< of reads that fail with EIO
  std::atomic<std::uint64_t> write_budget{~0ull};  ///< bytes that may still be written before ENOSPC
  std::atomic<std::uint64_t> reads{0};
  std::atomic<std::uint64_t> writes{0};
  std::atomic<std::uint64_t> rng{1};
  std::atomic<bool> nowait_refuses{false};
  std::atomic<bool> writes_hang{false};              ///< until it is false again
  std::atomic<std::uint64_t> max_file_bytes{~0ull};  ///< longer files are refused with EFBIG
  std::atomic<int> max_open_files{1 << 30};          ///< opening more fails with EMFILE
  std::atomic<int> open_files{0};
  std::atomic<std::uint64_t> opens{0};

  [[nodiscard]] bool roll(int percent) {
    if (percent == 0) return false;
    Rng r(rng.fetch_add(0x9e3779b97f4a7c15ull));
    return r.below(100) < static_cast<std::uint64_t>(percent);
  }
};

class FaultyFile final : public io::File {
 public:
  FaultyFile(std::unique_ptr<io::File> file, std::shared_ptr<Faults> faults)
      : file_(std::move(file)), faults_(std::move(faults)) {
    ++faults_->open_files;
  }
  ~FaultyFile() override { --faults_->open_files; }
  FaultyFile(const FaultyFile&) = delete;
  FaultyFile& operator=(const FaultyFile&) = delete;
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> dst) override {
    ++faults_->reads;
    if (faults_->roll(faults_->read_error_percent)) return fail(errno_error(EIO, "read"));
    return file_->read_at(offset, dst);
  }
  Result<std::size_t> read_at_nowait(std::uint64_t offset, std::span<std::byte> dst) override {
    if (faults_->nowait_refuses) return fail(ErrorCode::kWouldWaitDevice);
    return file_->read_at_nowait(offset, dst);
  }
  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> src) override {
    ++faults_->writes;
    while (faults_->writes_hang) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (faults_->write_errno != 0) return fail(errno_error(faults_->write_errno, "write"));
    if (faults_->write_budget < src.size()) return fail(errno_error(ENOSPC, "write"));
    faults_->write_budget -= src.size();
    return file_->write_at(offset, src);
  }
  Result<void> truncate(std::uint64_t size) override {
    if (faults_->write_errno != 0) return fail(errno_error(faults_->write_errno, "truncate"));
    if (size > faults_->max_file_bytes) return fail(errno_error(EFBIG, "truncate"));
    return file_->truncate(size);
  }
  Result<void> sync() override { return file_->sync(); }
  Result<void> punch_hole(std::uint64_t offset, std::uint64_t length) override { return file_->punch_hole(offset, length); }
  Result<std::uint64_t> size() override { return file_->size(); }
  Result<std::uint64_t> allocated() override { return file_->allocated(); }
  int fd() const override { return file_->fd(); }

 private:
  std::unique_ptr<io::File> file_;
  std::shared_ptr<Faults> faults_;
};

class FaultyDisk final : public io::Disk {
 public:
  FaultyDisk(std::unique_ptr<io::Disk> disk, std::shared_ptr<Faults> faults)
      : disk_(std::move(disk)), faults_(std::move(faults)) {}
  const std::string& root() const override { return disk_->root(); }
  Result<std::unique_ptr<io::File>> open(const std::string& path, io::OpenMode mode) override {
    const bool ours = path.starts_with("objects/") || path == "probe";
    if (ours && mode == io::OpenMode::kCreate && faults_->write_errno != 0)
      return fail(errno_error(faults_->write_errno, "create"));
    if (ours) ++faults_->opens;
    if (ours && faults_->open_files >= faults_->max_open_files) return fail(errno_error(EMFILE, "open"));
    auto file = disk_->open(path, mode);
    if (!file || !ours) return file;
    return std::unique_ptr<io::File>(std::make_unique<FaultyFile>(std::move(*file), faults_));
  }
  Result<void> make_dirs(const std::string& path) override { return disk_->make_dirs(path); }
  Result<void> remove(const std::string& path) override {
    if (faults_->write_errno == EROFS) return fail(errno_error(EROFS, "remove"));
    return disk_->remove(path);
  }
  Result<void> rename(const std::string& from, const std::string& to) override { return disk_->rename(from, to); }
  Result<std::vector<std::string>> list(const std::string& path) override { return disk_->list(path); }
  Result<io::SpaceInfo> space() override { return disk_->space(); }

 private:
  std::unique_ptr<io::Disk> disk_;
  std::shared_ptr<Faults> faults_;
};

}  // namespace thermo::cache::testing
