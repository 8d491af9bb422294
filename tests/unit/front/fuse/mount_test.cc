// Mounting and unmounting for real: bad mount points, dead mounts, ordinary users.

#include "front/fuse/mount.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "front/fuse/connection.h"
#include "front/fuse/fusermount.h"
#include "mounted.h"

namespace thermo::fuse::testing {
namespace {

class Mount : public MountedTest {};

std::string refusal(const std::string& path, ErrorCode code, const std::string& words = "") {
  auto mounted = mount_fuse({path, "s3://fake", *parse_mount_options(words), false});
  if (mounted) return "it was mounted";
  if (mounted.error().code() != code) return "other code: " + mounted.error().describe();
  return std::string(mounted.error().message());
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(Mount, BadMountPointsAreNamedWithTheirMend) {
  EXPECT_TRUE(has(refusal(dir / "missing", ErrorCode::kNotFound), "mkdir -p " + (dir / "missing")));
  std::ofstream(dir / "file") << "x";
  EXPECT_TRUE(has(refusal(dir / "file", ErrorCode::kNotDirectory), "is not a folder"));
  EXPECT_TRUE(has(refusal(dir / "file/below", ErrorCode::kNotDirectory), "is not a folder"));
  EXPECT_TRUE(has(refusal(dir.path(), ErrorCode::kNotEmpty), "-o nonempty"));
  {
    auto mounted = mount_fuse({dir.path(), "s3://fake", *parse_mount_options("nonempty"), false});
    EXPECT_TRUE(mounted.has_value());
    EXPECT_TRUE(unmount(dir.path(), true).has_value());
  }
  ::unlink((dir / "file").c_str());
  EXPECT_EQ(unmount(dir.path(), false).error().code(), ErrorCode::kNotFound);
}

TEST_F(Mount, ATakenMountPointNamesWhatIsThere) {
  ASSERT_NO_FATAL_FAILURE(mount());
  const auto text = refusal(dir.path() + "/", ErrorCode::kBusy);
  EXPECT_TRUE(has(text, "s3://fake/prefix")) << text;
  EXPECT_TRUE(has(text, "thermo umount")) << text;
  const auto mounts = list_thermo_mounts();
  EXPECT_EQ(std::count_if(mounts.begin(), mounts.end(), [&](const MountPoint& m) { return m.path == dir.path(); }), 1);
}

TEST_F(Mount, OptionsReachTheKernel) {
  vfs.add_file(vfs::kRootNode, "f", "x");
  ASSERT_NO_FATAL_FAILURE(mount({}, "ro,noexec,noatime"));
  const auto there = mount_at(dir.path());
  ASSERT_TRUE(there.has_value());
  for (const auto* word : {"ro", "nosuid", "nodev", "noexec", "noatime"})
    EXPECT_TRUE(has("," + there->options + ",", word)) << there->options;
  EXPECT_EQ(::open((dir / "new").c_str(), O_CREAT | O_WRONLY, 0644), -1);
  EXPECT_EQ(errno, EROFS);
}

TEST_F(Mount, ADeadMountIsReplaced) {
  for (int layers = 0; layers < 2; ++layers) {
    auto mounted = mount_fuse({dir.path(), "s3://dead", {}, false});
    ASSERT_TRUE(mounted.has_value()) << mounted.error().describe();
    EXPECT_EQ(mounted->cleared_dead, layers == 1);
    mounted->device.reset();  // as kill -9 does
    struct stat info{};
    ASSERT_EQ(::stat(dir.path().c_str(), &info), -1);
    ASSERT_EQ(errno, ENOTCONN);
  }
  vfs.add_file(vfs::kRootNode, "f", "alive");
  ASSERT_NO_FATAL_FAILURE(mount());
  std::ifstream file(dir / "f");
  std::string text;
  file >> text;
  EXPECT_EQ(text, "alive");
  EXPECT_FALSE(*clear_dead_mount(dir.path()));
  EXPECT_FALSE(*clear_dead_mount("/tmp"));
  EXPECT_FALSE(*clear_dead_mount(dir.path() + "-not-there"));
}

// It was detached like one of ours; sshfs with `reconnect`, say, would have come back.
TEST_F(Mount, ADeadMountOfAnotherProgramIsLeftAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "mount(2) needs root";
  {
    const UniqueFd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
    const std::string data = "fd=" + std::to_string(device.get()) + ",rootmode=40000,user_id=0,group_id=0";
    ASSERT_EQ(::mount("theirs", dir.path().c_str(), "fuse.other", MS_NOSUID | MS_NODEV, data.c_str()), 0) << errno;
  }
  const auto cleared = clear_dead_mount(dir.path());
  const auto text = refusal(dir.path(), ErrorCode::kBusy);
  const bool there = mount_at(dir.path()).has_value();
  ::umount2(dir.path().c_str(), MNT_DETACH);
  EXPECT_TRUE(there);
  ASSERT_FALSE(cleared.has_value());
  EXPECT_EQ(cleared.error().code(), ErrorCode::kBusy);
  EXPECT_TRUE(has(text, "fuse.other") && has(text, "'theirs'") && has(text, "`umount -l " + dir.path() + "`")) << text;
}

TEST_F(Mount, ADeadMountIsUnmountedByItsPath) {
  {
    auto mounted = mount_fuse({dir.path(), "s3://dead", {}, false});
    ASSERT_TRUE(mounted.has_value());
  }
  EXPECT_EQ(*canonical_mount_path(dir.path() + "//"), dir.path());
  EXPECT_TRUE(unmount(dir.path(), false).has_value());
  EXPECT_FALSE(mount_at(dir.path()).has_value());
}

TEST_F(Mount, ADescriptorIsToldApartFromOthers) {
  const MountDir other;
  auto first = mount_fuse({dir.path(), "s3://one", {}, false});
  auto second = mount_fuse({other.path(), "s3://two", {}, false});
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(check_fuse_device(first->device.get()));
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  EXPECT_EQ(check_fuse_device(pipe_ends[0]).error().code(), ErrorCode::kInvalidArgument);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(check_fuse_device(null.get()).error().code(), ErrorCode::kInvalidArgument);

  const auto device = mount_served_by(first->device.get(), dir.path());
  ASSERT_TRUE(device.has_value());
  EXPECT_TRUE(is_mounted_at(dir.path(), *device));
  EXPECT_FALSE(is_mounted_at(other.path(), *device));
  EXPECT_FALSE(mount_served_by(first->device.get(), "/").has_value());
  EXPECT_FALSE(mount_served_by(first->device.get(), "/proc").has_value());
  second->device.reset();
  EXPECT_TRUE(unmount(other.path(), false));
  first->device.reset();
  EXPECT_TRUE(unmount(dir.path(), false));
  EXPECT_FALSE(is_mounted_at(dir.path(), *device));
}

TEST_F(Mount, SymlinksLeadToTheMountPoint) {
  const MountDir other;
  const std::string link = other / "link";
  ASSERT_EQ(::symlink(dir.path().c_str(), link.c_str()), 0);
  auto mounted = mount_fuse({link, "s3://fake", {}, false});
  ASSERT_TRUE(mounted.has_value());
  EXPECT_EQ(mounted->path, dir.path());
  EXPECT_TRUE(mount_at(dir.path()).has_value());
  mounted->device.reset();
  EXPECT_TRUE(clear_dead_mount(link).value_or(false));
  EXPECT_FALSE(mount_at(dir.path()).has_value());
  ::unlink(link.c_str());
}

TEST_F(Mount, TheHelperMountsForRootToo) {
  auto mounted = mount_fuse({dir.path(), "s3://a,b", *parse_mount_options("noatime"), true});
  if (!mounted && mounted.error().code() == ErrorCode::kNotFound) GTEST_SKIP() << mounted.error().message();
  ASSERT_TRUE(mounted.has_value()) << mounted.error().describe();
  EXPECT_FALSE(mounted->privileged);
  const auto there = mount_at(mounted->path);
  ASSERT_TRUE(there.has_value());
  EXPECT_EQ(there->source, "s3://a,b");
  EXPECT_EQ(there->type, kFsType);
  EXPECT_TRUE(has(there->options, "nosuid"));
}

/// Runs only as the child of the next test, as an ordinary user.
TEST(MountChild, AsOrdinaryUser) {
  const char* path = std::getenv("THERMO_TEST_USER_MOUNT");
  if (path == nullptr) GTEST_SKIP() << "runs as the child of Mount.AnOrdinaryUserMountsByTheHelper";
  ASSERT_NE(::geteuid(), 0u);
  metrics::Registry metrics;
  ThreadPool pool({"pool", 2, 16});
  FakeVfs vfs;
  vfs.add_file(vfs::kRootNode, "f", "mine");

  auto refused = mount_fuse({path, "s3://user", *parse_mount_options("allow_other"), false});
  if (!refused) {
    EXPECT_EQ(refused.error().code(), ErrorCode::kInvalidArgument) << refused.error().describe();
    EXPECT_TRUE(has(std::string(refused.error().message()), "add the line user_allow_other to /etc/fuse.conf"))
        << refused.error().describe();
  } else {
    ASSERT_TRUE(unmount(path, false).has_value());  // this machine's fuse.conf grants it
  }
  refused = mount_fuse({"/usr/share/doc", "s3://user", *parse_mount_options("nonempty"), false});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), ErrorCode::kAccessDenied) << refused.error().describe();

  auto mounted = mount_fuse({path, "s3://user", *parse_mount_options("ro"), false});
  ASSERT_TRUE(mounted.has_value()) << mounted.error().describe();
  EXPECT_FALSE(mounted->privileged);
  SessionOptions options;
  options.device_pool = options.read_pool = &pool;
  options.metrics = &metrics;
  auto session = FuseSession::start(std::move(mounted->device), vfs, options);
  ASSERT_TRUE(session.has_value()) << session.error().describe();
  {
    std::ifstream file(std::string(path) + "/f");
    std::string text;
    file >> text;
    EXPECT_EQ(text, "mine");
    EXPECT_EQ(raise_read_ahead(path).error().code(), ErrorCode::kAccessDenied);
    const auto busy = unmount(path, false);
    ASSERT_FALSE(busy.has_value());
    EXPECT_EQ(busy.error().code(), ErrorCode::kBusy) << busy.error().describe();
  }
  // The release of the file is on its way to us: until it arrives the mount is busy.
  EXPECT_TRUE(eventually([&] { return unmount(path, false).has_value(); }));
  (*session)->wait();
  (*session)->stop();

  // A dead mount of one's own is cleared as well.
  mounted = mount_fuse({path, "s3://user", {}, false});
  ASSERT_TRUE(mounted.has_value()) << mounted.error().describe();
  mounted->device.reset();
  EXPECT_TRUE(clear_dead_mount(path).value_or(false));
  EXPECT_FALSE(mount_at(path).has_value());
}

TEST_F(Mount, AnOrdinaryUserMountsByTheHelper) {
  struct stat helper{};
  if (::stat("/usr/bin/fusermount3", &helper) != 0 || (helper.st_mode & S_ISUID) == 0)
    GTEST_SKIP() << "needs a setuid fusermount3 (apt-get install fuse3)";
  if (::access("/usr/bin/setpriv", X_OK) != 0 || ::access("/usr/bin/unshare", X_OK) != 0)
    GTEST_SKIP() << "needs setpriv and unshare (util-linux)";
  // nobody must be able to run this binary: from a copy, since the build folder may be private.
  const MountDir bin;
  ASSERT_EQ(::chmod(bin.path().c_str(), 0755), 0);
  ASSERT_EQ(::chown(dir.path().c_str(), 65534, 65534), 0);
  const std::string copy = bin / "test";
  // In a mount namespace of its own, where /dev/fuse is open to everybody as udev makes it elsewhere; 77 = that cannot be had.
  const std::string command =
      "cp /proc/" + std::to_string(::getpid()) + "/exe " + copy + " && chmod 755 " + copy +
      " && cd / && export THERMO_TEST_USER_MOUNT=" + dir.path() + " D=" + bin.path() +
      " && unshare -m sh -c '{ mknod $D/fuse c 10 229 && chmod 666 $D/fuse && mount --bind $D/fuse /dev/fuse && "
      ": <>/dev/fuse; } || exit 77; exec setpriv --reuid 65534 --regid 65534 --clear-groups " +
      copy + " --gtest_filter=MountChild.*' 2>&1";
  std::string output;
  FILE* pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char line[512];
  while (std::fgets(line, sizeof line, pipe) != nullptr) output += line;
  const int status = ::pclose(pipe);
  ::unlink(copy.c_str());
  ::unlink((bin / "fuse").c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
    GTEST_SKIP() << "needs a private mount namespace with a device node: " << output;
  EXPECT_EQ(status, 0) << output;
  EXPECT_TRUE(has(output, "[  PASSED  ] 1 test")) << output;
}

TEST_F(Mount, AMissingHelperNamesTheInstallCommand) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  const auto mounted = fusermount_mount(dir.path(), "s", {});
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(mounted.has_value());
  EXPECT_EQ(mounted.error().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(has(std::string(mounted.error().message()), "apt-get install fuse3")) << mounted.error().describe();
}

TEST_F(Mount, TheHelpersOwnRefusalIsShown) {
  const auto missing = fusermount_mount(dir / "not-there", "s", {});
  ASSERT_FALSE(missing.has_value());
  EXPECT_TRUE(has(std::string(missing.error().message()), "not-there")) << missing.error().describe();
  const auto unmounted = fusermount_unmount(dir.path(), false);
  ASSERT_FALSE(unmounted.has_value());
}

}  // namespace
}  // namespace thermo::fuse::testing
