// Real mounts: what programs see.

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include "front/fuse/notifier.h"
#include "mounted.h"

namespace thermo::fuse::testing {
namespace {

int error_of(int result) { return result < 0 ? errno : 0; }

std::vector<std::string> names_of(DIR* folder) {
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(folder)) names.emplace_back(entry->d_name);
  return names;
}

class Session : public MountedTest {};

TEST_F(Session, FilesReadBackByteForByte) {
  const auto big = pattern((9u << 20) + 777);
  vfs.add_file(vfs::kRootNode, "big", big);
  vfs.add_file(vfs::kRootNode, "empty", "");
  const auto deep = vfs.add_dir(vfs.add_dir(vfs::kRootNode, "a"), "b");
  vfs.add_file(deep, "with space\nand newline", "x");
  ASSERT_NO_FATAL_FAILURE(mount());
  EXPECT_EQ(read_file(dir / "big"), big);
  EXPECT_EQ(read_file(dir / "empty"), "");
  EXPECT_EQ(read_file(dir / "a/b/with space\nand newline"), "x");
  EXPECT_GE(session->negotiated().minor, kMinProtocolMinor);
  // Counted after the answer went out, so that counting costs the reader nothing.
  EXPECT_TRUE(eventually([&] { return metric("thermocline_fuse_ops_total{op=\"read\"}") > 0; }));
  EXPECT_TRUE(eventually([&] { return metric("thermocline_fuse_answers_total{by=\"inline\"}") > 0; }));
}

TEST_F(Session, RequestsAreOneMegabyteAndManySlicesAreJoined) {
  const auto big = pattern(4u << 20);
  vfs.add_file(vfs::kRootNode, "big", big);
  vfs.slices_of = 1000;  // about 1,049 slices a request: more than one writev takes
  ASSERT_NO_FATAL_FAILURE(mount());
  const UniqueFd fd(::open((dir / "big").c_str(), O_RDONLY | O_DIRECT));
  ASSERT_TRUE(fd.valid());
  void* memory = ::mmap(nullptr, 4u << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(::pread(fd.get(), memory, 4u << 20, 0), 4 << 20);
  EXPECT_EQ(std::memcmp(memory, big.data(), big.size()), 0);
  if (session->negotiated().has(kMaxPages)) {
    EXPECT_EQ(vfs.reads, 4);
  }
  ::munmap(memory, 4u << 20);
}

TEST_F(Session, OldProtocolsWorkToo) {
  const auto big = pattern(3'000'001);
  vfs.add_file(vfs::kRootNode, "big", big);
  for (const std::uint32_t minor : {23u, 27u, 34u, 36u, 39u}) {
    SessionOptions options;
    options.max_minor = minor;
    ASSERT_NO_FATAL_FAILURE(mount(options));
    EXPECT_EQ(session->negotiated().minor, minor);
    EXPECT_EQ(session->negotiated().has(kHasResend), false);
    EXPECT_EQ(read_file(dir / "big"), big) << minor;
    DIR* folder = ::opendir(dir.path().c_str());
    ASSERT_NE(folder, nullptr);
    EXPECT_EQ(names_of(folder), (std::vector<std::string>{".", "..", "big"}));
    ::closedir(folder);
    ASSERT_TRUE(unmount(dir.path(), false).has_value());
    session.reset();
  }
}

TEST_F(Session, AttributesArriveWhole) {
  const auto node = vfs.add_file(vfs::kRootNode, "f", "hello");
  ASSERT_NO_FATAL_FAILURE(mount());
  struct stat info{};
  ASSERT_EQ(::stat((dir / "f").c_str(), &info), 0);
  EXPECT_EQ(info.st_ino, 4242 + node);
  EXPECT_EQ(info.st_size, 5);
  EXPECT_EQ(info.st_mode, S_IFREG | 0644u);
  EXPECT_EQ(info.st_mtim.tv_sec, 1'650'000'000);
  EXPECT_EQ(info.st_mtim.tv_nsec, 123'456'789);
  EXPECT_EQ(info.st_blocks, 1);
  struct statvfs fs{};
  ASSERT_EQ(::statvfs(dir.path().c_str(), &fs), 0);
  EXPECT_EQ(fs.f_blocks * fs.f_frsize, 1ull << 40);
  EXPECT_EQ(fs.f_bavail * fs.f_frsize, 1ull << 39);
  EXPECT_EQ(fs.f_namemax, 255u);
  EXPECT_EQ(fs.f_flag & (ST_NOSUID | ST_NODEV), static_cast<unsigned long>(ST_NOSUID | ST_NODEV));
}

TEST_F(Session, ReadOnlyIsHonestWithoutTheRoOption) {
  vfs.add_file(vfs::kRootNode, "f", "hello");
  vfs.add_dir(vfs::kRootNode, "d");
  ASSERT_NO_FATAL_FAILURE(mount());
  const std::string f = dir / "f", d = dir / "d", n = dir / "new";
  EXPECT_EQ(error_of(::open(f.c_str(), O_WRONLY)), EROFS);
  EXPECT_EQ(error_of(::open(f.c_str(), O_RDWR)), EROFS);
  EXPECT_EQ(error_of(::open(f.c_str(), O_WRONLY | O_TRUNC)), EROFS);
  EXPECT_EQ(error_of(::open(n.c_str(), O_WRONLY | O_CREAT, 0644)), EROFS);
  EXPECT_EQ(error_of(::open(dir.path().c_str(), O_WRONLY | O_TMPFILE, 0644)), EROFS);
  EXPECT_EQ(error_of(::mkdir(n.c_str(), 0755)), EROFS);
  EXPECT_EQ(error_of(::mknod(n.c_str(), S_IFREG | 0644, 0)), EROFS);
  EXPECT_EQ(error_of(::symlink("x", n.c_str())), EROFS);
  EXPECT_EQ(error_of(::link(f.c_str(), n.c_str())), EROFS);
  EXPECT_EQ(error_of(::unlink(f.c_str())), EROFS);
  EXPECT_EQ(error_of(::rmdir(d.c_str())), EROFS);
  EXPECT_EQ(error_of(::rename(f.c_str(), n.c_str())), EROFS);
  EXPECT_EQ(error_of(::chmod(f.c_str(), 0600)), EROFS);
  EXPECT_EQ(error_of(::chown(f.c_str(), 1, 1)), EROFS);
  EXPECT_EQ(error_of(::truncate(f.c_str(), 0)), EROFS);
  EXPECT_EQ(error_of(::utimensat(AT_FDCWD, f.c_str(), nullptr, 0)), EROFS);
  EXPECT_EQ(error_of(::setxattr(f.c_str(), "user.x", "1", 1, 0)), EROFS);
  EXPECT_EQ(error_of(::removexattr(f.c_str(), "user.thermo.etag")), EROFS);
  char target[16];
  EXPECT_EQ(error_of(static_cast<int>(::readlink(f.c_str(), target, sizeof target))), EINVAL);
  EXPECT_EQ(read_file(f), "hello");
}

TEST_F(Session, HarmlessCallsSucceed) {
  vfs.add_file(vfs::kRootNode, "f", "hello");
  ASSERT_NO_FATAL_FAILURE(mount());
  const UniqueFd fd(::open((dir / "f").c_str(), O_RDONLY));
  EXPECT_EQ(::fsync(fd.get()), 0);
  EXPECT_EQ(::access((dir / "f").c_str(), R_OK), 0);
  EXPECT_EQ(::lseek(fd.get(), 0, SEEK_DATA), 0);
  EXPECT_EQ(::lseek(fd.get(), 0, SEEK_HOLE), 5);
  EXPECT_EQ(error_of(::ioctl(fd.get(), 0x1234)), ENOTTY);
  struct statx x{};
  EXPECT_EQ(::statx(AT_FDCWD, (dir / "f").c_str(), 0, STATX_BASIC_STATS, &x), 0);
  EXPECT_EQ(x.stx_size, 5u);
  struct flock lock{F_RDLCK, SEEK_SET, 0, 0, 0};
  EXPECT_EQ(::fcntl(fd.get(), F_SETLK, &lock), 0);
}

TEST_F(Session, AReadOnlyHandleSendsNoFlushAndIsReleased) {
  vfs.add_file(vfs::kRootNode, "f", "hello");
  ASSERT_NO_FATAL_FAILURE(mount());
  const UniqueFd other(::open((dir / "f").c_str(), O_RDONLY));
  {
    // M25: a duplicate goes on reading after the first descriptor was closed.
    UniqueFd first(::open((dir / "f").c_str(), O_RDONLY));
    const UniqueFd second(::dup(first.get()));
    first.reset();
    char text[8];
    EXPECT_EQ(::read(second.get(), text, sizeof text), 5);
  }
  EXPECT_TRUE(eventually([&] { return vfs.releases == 1; }));
  if (session->negotiated().minor >= 35) {
    EXPECT_EQ(metric("thermocline_fuse_ops_total{op=\"flush\"}"), 0);
  }
  EXPECT_EQ(vfs.open_handles(), 1u);
}

TEST_F(Session, FoldersListRewindAndSeek) {
  const auto folder = vfs.add_dir(vfs::kRootNode, "d");
  std::vector<std::string> expected = {".", ".."};
  for (int i = 0; i < 3000; ++i) {
    char name[64];
    std::snprintf(name, sizeof name, "file-%05d-with-a-name-of-some-length", i);
    vfs.add_file(folder, name, "x");
    expected.emplace_back(name);
  }
  ASSERT_NO_FATAL_FAILURE(mount());
  DIR* open = ::opendir((dir / "d").c_str());
  ASSERT_NE(open, nullptr);
  EXPECT_EQ(names_of(open), expected);
  ::rewinddir(open);
  EXPECT_EQ(names_of(open), expected);
  ::rewinddir(open);
  std::vector<long> places;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    places.push_back(::telldir(open));
    ASSERT_NE(::readdir(open), nullptr);
  }
  for (const std::size_t at : {2999u, 0u, 1500u, 1u, 77u}) {
    ::seekdir(open, places[at]);
    const dirent* entry = ::readdir(open);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->d_name, expected[at]);
    if (at > 1) {
      EXPECT_EQ(entry->d_type, DT_REG);
    }
  }
  ::closedir(open);
  EXPECT_TRUE(eventually([&] { return vfs.open_handles() == 0; }));
}

TEST_F(Session, ListingGivesTheKernelTheAttributes) {
  const auto folder = vfs.add_dir(vfs::kRootNode, "d");
  for (int i = 0; i < 20; ++i) vfs.add_file(folder, "f" + std::to_string(i), "x");
  ASSERT_NO_FATAL_FAILURE(mount());
  DIR* open = ::opendir((dir / "d").c_str());
  ASSERT_NE(open, nullptr);
  EXPECT_EQ(names_of(open).size(), 22u);
  ::closedir(open);
  const int before = vfs.lookups;
  struct stat info{};
  for (int i = 0; i < 20; ++i) ASSERT_EQ(::stat((dir / ("d/f" + std::to_string(i))).c_str(), &info), 0);
  EXPECT_EQ(vfs.lookups, before);
}

TEST_F(Session, AttributesAreProbedAndSized) {
  const auto node = vfs.add_file(vfs::kRootNode, "f", "x");
  ASSERT_NO_FATAL_FAILURE(mount());
  const std::string f = dir / "f", expected = "\"e" + std::to_string(node) + "\"";
  char value[128];
  const auto size = static_cast<ssize_t>(expected.size());
  EXPECT_EQ(::getxattr(f.c_str(), "user.thermo.etag", nullptr, 0), size);
  EXPECT_EQ(::getxattr(f.c_str(), "user.thermo.etag", value, sizeof value), size);
  EXPECT_EQ(std::string(value, expected.size()), expected);
  EXPECT_EQ(error_of(static_cast<int>(::getxattr(f.c_str(), "user.thermo.etag", value, 2))), ERANGE);
  EXPECT_EQ(error_of(static_cast<int>(::getxattr(f.c_str(), "user.other", value, sizeof value))), ENODATA);
  const std::string names("user.thermo.etag\0user.thermo.store\0", 35);
  EXPECT_EQ(::listxattr(f.c_str(), nullptr, 0), 35);
  EXPECT_EQ(::listxattr(f.c_str(), value, sizeof value), 35);
  EXPECT_EQ(std::string(value, 35), names);
  EXPECT_EQ(error_of(static_cast<int>(::listxattr(f.c_str(), value, 10))), ERANGE);
}

TEST_F(Session, ErrorsKeepTheirMeaning) {
  ASSERT_NO_FATAL_FAILURE(mount());
  EXPECT_EQ(read_file(dir / "denied"), "errno " + std::to_string(EACCES));
  EXPECT_EQ(read_file(dir / "throttled"), "errno " + std::to_string(EIO));
  EXPECT_EQ(read_file(dir / "nothing"), "errno " + std::to_string(ENOENT));
  EXPECT_EQ(read_file(dir / "\n"), "errno " + std::to_string(ENOENT));
  EXPECT_EQ(read_file(dir / std::string(255, 'x')), "errno " + std::to_string(ENOENT));
  EXPECT_EQ(read_file(dir / std::string(256, 'x')), "errno " + std::to_string(ENAMETOOLONG));
  EXPECT_EQ(read_file(dir.path()), "errno " + std::to_string(EISDIR));
}

TEST_F(Session, NegativeEntriesAreBelievedAsLongAsTheyAreValid) {
  ASSERT_NO_FATAL_FAILURE(mount());
  struct stat info{};
  EXPECT_EQ(error_of(::stat((dir / "later").c_str(), &info)), ENOENT);
  const int asked = vfs.lookups;
  EXPECT_EQ(error_of(::stat((dir / "later").c_str(), &info)), ENOENT);
  EXPECT_EQ(vfs.lookups, asked);
  vfs.add_file(vfs::kRootNode, "later", "x");
  EXPECT_EQ(error_of(::stat((dir / "later").c_str(), &info)), ENOENT);  // still believed
  vfs.tell_kernel(vfs::kRootNode, "later");
  EXPECT_TRUE(eventually([&] { return ::stat((dir / "later").c_str(), &info) == 0; }));

  vfs.valid_ns = 0;  // strict: every look asks
  EXPECT_EQ(error_of(::stat((dir / "other").c_str(), &info)), ENOENT);
  vfs.add_file(vfs::kRootNode, "other", "x");
  EXPECT_EQ(::stat((dir / "other").c_str(), &info), 0);
}

TEST_F(Session, AReplacedFileIsANewGenerationWithTheSameIdentity) {
  vfs.add_file(vfs::kRootNode, "f", "version-one");
  ASSERT_NO_FATAL_FAILURE(mount());
  const UniqueFd old(::open((dir / "f").c_str(), O_RDONLY));
  struct stat before{}, after{}, held{};
  ASSERT_EQ(::stat((dir / "f").c_str(), &before), 0);
  void* map = ::mmap(nullptr, 11, PROT_READ, MAP_SHARED, old.get(), 0);
  ASSERT_NE(map, MAP_FAILED);

  vfs.replace(vfs::kRootNode, "f", "version-two, longer");
  EXPECT_EQ(read_file(dir / "f"), "version-two, longer");  // never ESTALE, and no invalidation was needed
  vfs.tell_kernel(vfs::kRootNode, "f");
  ASSERT_TRUE(eventually([&] { return ::stat((dir / "f").c_str(), &after) == 0 && after.st_size == 19; }));
  EXPECT_EQ(after.st_ino, before.st_ino);
  EXPECT_EQ(after.st_dev, before.st_dev);
  ASSERT_EQ(::fstat(old.get(), &held), 0);
  EXPECT_EQ(held.st_size, 11);
  char text[64];
  ASSERT_EQ(::pread(old.get(), text, sizeof text, 0), 11);
  EXPECT_EQ(std::string(text, 11), "version-one");
  EXPECT_EQ(std::string(static_cast<const char*>(map), 11), "version-one");
  ::munmap(map, 11);
}

TEST_F(Session, OverflowingInvalidationsForgetEveryName) {
  vfs.add_file(vfs::kRootNode, "f", "one");
  ASSERT_NO_FATAL_FAILURE(mount());
  struct stat info{};
  ASSERT_EQ(::stat((dir / "f").c_str(), &info), 0);
  vfs.replace(vfs::kRootNode, "f", "two, longer");
  ASSERT_EQ(::stat((dir / "f").c_str(), &info), 0);
  ASSERT_EQ(info.st_size, 3);  // the kernel still believes it
  // More names than the queue holds, faster than the kernel takes them; the one that matters is told in any case.
  vfs.tell_kernel(vfs::kRootNode, "f");
  for (std::size_t i = 0; i < Notifier::kMaxQueued * 4; ++i) vfs.tell_kernel(vfs::kRootNode, "n");
  EXPECT_TRUE(eventually([&] { return ::stat((dir / "f").c_str(), &info) == 0 && info.st_size == 11; }));
}

TEST_F(Session, ManyReadersAtOnceSeeTheirOwnFiles) {
  std::vector<std::string> contents;
  for (int i = 0; i < 16; ++i) {
    contents.push_back(pattern(50'000 + static_cast<std::size_t>(i) * 1013));
    const auto node = vfs.add_file(vfs::kRootNode, "f" + std::to_string(i), contents.back());
    if (i % 3 == 1) vfs.slow(node, ErrorCode::kWouldWaitDevice);
    if (i % 3 == 2) vfs.slow(node, ErrorCode::kWouldWaitStore);
  }
  ASSERT_NO_FATAL_FAILURE(mount());
  std::vector<std::thread> readers;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    readers.emplace_back([&, t] {
      for (int i = 0; i < 48; ++i) {
        const auto which = static_cast<std::size_t>((t * 7 + i) % 16);
        if (read_file(dir / ("f" + std::to_string(which))) != contents[which]) ++wrong;
      }
    });
  }
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Session, HugeReadAheadNeverEndsAFileEarly) {  // M24
  const auto big = pattern((40u << 20) + 12'345);
  const auto node = vfs.add_file(vfs::kRootNode, "big", big);
  vfs.slow(node, ErrorCode::kWouldWaitStore);
  ASSERT_NO_FATAL_FAILURE(mount());
  ASSERT_TRUE(raise_read_ahead(dir.path(), 128u << 10).has_value());
  EXPECT_TRUE(read_file(dir / "big") == big);
}

TEST_F(Session, ManyRefusedWritersBlockNobody) {  // M48
  vfs.add_file(vfs::kRootNode, "f", "x");
  ASSERT_NO_FATAL_FAILURE(mount());
  std::vector<UniqueFd> open;
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(error_of(::open((dir / ("new" + std::to_string(i))).c_str(), O_WRONLY | O_CREAT, 0644)), EROFS);
    open.emplace_back(::open((dir / "f").c_str(), O_RDONLY));
  }
  DIR* folder = ::opendir(dir.path().c_str());
  ASSERT_NE(folder, nullptr);
  EXPECT_EQ(names_of(folder).size(), 3u);
  ::closedir(folder);
  EXPECT_TRUE(eventually([&] { return vfs.open_handles() == 64; }));
}

TEST_F(Session, ReadAheadIsRaised) {
  ASSERT_NO_FATAL_FAILURE(mount());
  const auto raised = raise_read_ahead(dir.path());
  ASSERT_TRUE(raised.has_value()) << raised.error().describe();
  const auto mount = mount_at(dir.path());
  ASSERT_TRUE(mount.has_value());
  EXPECT_EQ(mount->source, "s3://fake/prefix");
  EXPECT_EQ(mount->type, kFsType);
  std::ifstream file("/sys/class/bdi/" + std::to_string(mount->major) + ":" + std::to_string(mount->minor) + "/read_ahead_kb");
  unsigned kb = 0;
  file >> kb;
  EXPECT_EQ(kb, kReadAheadKb);
  EXPECT_FALSE(raise_read_ahead("/nowhere").has_value());
}

TEST_F(Session, ADescriptorThatIsNotMountedIsRefused) {
  UniqueFd device(::open("/dev/null", O_RDWR));
  SessionOptions options;
  options.device_pool = options.read_pool = &read_pool;
  options.metrics = &metrics;
  EXPECT_FALSE(FuseSession::start(std::move(device), vfs, options).has_value());
}

}  // namespace
}  // namespace thermo::fuse::testing
