#pragma once
// A real mount of a FakeVfs in a folder of its own, taken down whatever happens.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "fake_vfs.h"
#include "front/fuse/mount.h"
#include "front/fuse/session.h"

namespace thermo::fuse::testing {

/// Empty, or why this machine cannot mount.
inline std::string why_no_mounts() {
  if (::geteuid() != 0) return "needs root to mount";
  if (::access("/dev/fuse", R_OK | W_OK) != 0) return "needs /dev/fuse";
  return {};
}

/// A temporary folder; on destruction what is mounted there is aborted (MNT_FORCE, so that no process stays unkillable) and
/// detached.
class MountDir {
 public:
  MountDir() {
    char text[] = "/tmp/thermo-fuse-XXXXXX";
    if (::mkdtemp(text) != nullptr) path_ = text;
  }
  ~MountDir() {
    for (int layers = 0; layers < 4; ++layers) {
      ::umount2(path_.c_str(), MNT_FORCE);
      if (::umount2(path_.c_str(), MNT_DETACH) != 0) break;
    }
    ::rmdir(path_.c_str());
  }
  MountDir(const MountDir&) = delete;
  MountDir& operator=(const MountDir&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

class MountedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  }

  void mount(SessionOptions options = {}, const std::string& words = "") {
    auto parsed = parse_mount_options(words);
    ASSERT_TRUE(parsed.has_value());
    auto mounted = mount_fuse({dir.path(), "s3://fake/prefix", *parsed, false});
    ASSERT_TRUE(mounted.has_value()) << mounted.error().describe();
    options.device_pool = &device_pool;
    options.read_pool = &read_pool;
    options.metrics = &metrics;
    options.name = dir.path();
    auto started = FuseSession::start(std::move(mounted->device), vfs, options);
    ASSERT_TRUE(started.has_value()) << started.error().describe();
    session = std::move(*started);
  }

  std::int64_t metric(const std::string& name) { return metrics.snapshot()[name]; }

  // Declared in the order of their lives: the mount goes first, then the session, then what they use.
  metrics::Registry metrics;
  ThreadPool device_pool{{"dev", 4, 64}};
  ThreadPool read_pool{{"read", 4, 64}};
  FakeVfs vfs;
  std::unique_ptr<FuseSession> session;
  MountDir dir;
};

/// Bytes that differ from page to page.
inline std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>((i * 2654435761u) >> 13);
  return text;
}

/// What a program reads from `path`, or "errno N".
inline std::string read_file(const std::string& path) {
  std::string out;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY));
  if (!fd.valid()) return "errno " + std::to_string(errno);
  std::vector<char> chunk(300'000);
  while (true) {
    const ssize_t n = ::read(fd.get(), chunk.data(), chunk.size());
    if (n < 0) return "errno " + std::to_string(errno);
    if (n == 0) return out;
    out.append(chunk.data(), static_cast<std::size_t>(n));
  }
}

/// Waits up to 5 s for a condition.
template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    ::usleep(5000);
  }
  return false;
}

}  // namespace thermo::fuse::testing
