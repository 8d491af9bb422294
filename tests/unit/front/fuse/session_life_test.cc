// Real mounts: waiting, interrupts, deadlines, and every way to end.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <algorithm>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

#include "mounted.h"

namespace thermo::fuse::testing {
namespace {

using namespace std::chrono_literals;

class SessionLife : public MountedTest {};

TEST_F(SessionLife, HitsDoNotWaitBehindWhatWaits) {
  const auto disk = vfs.add_file(vfs::kRootNode, "disk", pattern(100));
  const auto store = vfs.add_file(vfs::kRootNode, "store", pattern(200));
  const auto blocked = vfs.add_file(vfs::kRootNode, "blocked", "late");
  const auto hung = vfs.add_file(vfs::kRootNode, "hung", "later");
  vfs.add_file(vfs::kRootNode, "hit", "now");
  vfs.slow(disk, ErrorCode::kWouldWaitDevice);
  vfs.slow(store, ErrorCode::kWouldWaitStore);
  vfs.block(blocked, ErrorCode::kWouldWaitStore);
  vfs.block(hung, ErrorCode::kWouldWaitDevice);
  SessionOptions options;
  options.threads = 2;
  ASSERT_NO_FATAL_FAILURE(mount(options));
  EXPECT_EQ(read_file(dir / "disk"), pattern(100));
  EXPECT_EQ(read_file(dir / "store"), pattern(200));
  EXPECT_GE(vfs.retried, 2);
  EXPECT_TRUE(eventually([&] { return metric("thermocline_fuse_answers_total{by=\"pool\"}") >= 2; }));
  std::vector<std::thread> readers;
  // More than there are serving threads, of both kinds.
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] { EXPECT_EQ(read_file(dir / "blocked"), "late"); });
    readers.emplace_back([&] { EXPECT_EQ(read_file(dir / "hung"), "later"); });
  }
  EXPECT_TRUE(eventually([&] { return vfs.waiting >= 2; }));
  EXPECT_EQ(read_file(dir / "hit"), "now");
  EXPECT_GT(session->waiting(), 0u);
  vfs.release_blocked(blocked);
  vfs.release_blocked(hung);
  for (auto& reader : readers) reader.join();
  EXPECT_TRUE(eventually([&] { return session->waiting() == 0; }));
}

TEST_F(SessionLife, WithAFullPoolTheServingThreadWaitsItself) {
  ThreadPool tiny({"tiny", 1, 1});
  std::vector<vfs::NodeId> nodes;
  for (int i = 0; i < 4; ++i) {
    nodes.push_back(vfs.add_file(vfs::kRootNode, "f" + std::to_string(i), "x"));
    vfs.block(nodes.back(), ErrorCode::kWouldWaitStore);
  }
  auto mounted = mount_fuse({dir.path(), "s", {}, false});
  ASSERT_TRUE(mounted.has_value());
  SessionOptions options;
  options.device_pool = options.read_pool = &tiny;
  options.metrics = &metrics;
  options.threads = 3;
  auto own = FuseSession::start(std::move(mounted->device), vfs, options);
  ASSERT_TRUE(own.has_value());
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) readers.emplace_back([&, i] { EXPECT_EQ(read_file(dir / ("f" + std::to_string(i))), "x"); });
  EXPECT_TRUE(eventually([&] { return vfs.waiting >= 2; }));
  for (const auto node : nodes) vfs.release_blocked(node);
  for (auto& reader : readers) reader.join();
  ASSERT_TRUE(unmount(dir.path(), false).has_value());
  (*own)->stop();
}

TEST_F(SessionLife, AnInterruptedLookupEnds) {
  const auto folder = vfs.add_dir(vfs::kRootNode, "d");
  vfs.add_file(folder, "f", "x");
  vfs.block(folder, ErrorCode::kWouldWaitStore);
  ASSERT_NO_FATAL_FAILURE(mount());
  const std::string path = dir / "d/f";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int fd = ::open(path.c_str(), O_RDONLY);
    ::_exit(fd >= 0 ? 0 : 1);
  }
  EXPECT_TRUE(eventually([&] { return vfs.waiting > 0; }));
  ::kill(child, SIGKILL);
  int status = 0;
  EXPECT_TRUE(eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; }));
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(vfs.cancelled, 1);
  vfs.release_blocked(folder);
  EXPECT_EQ(read_file(path), "x");
}

TEST_F(SessionLife, AKilledReaderEnds) {
  const auto node = vfs.add_file(vfs::kRootNode, "f", pattern(4u << 20));
  vfs.block(node, ErrorCode::kWouldWaitDevice);
  ASSERT_NO_FATAL_FAILURE(mount());
  const std::string path = dir / "f";
  for (const int flags : {O_RDONLY, O_RDONLY | O_DIRECT}) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alignas(4096) static char buffer[65536];
      const int fd = ::open(path.c_str(), flags);
      const ssize_t n = ::read(fd, buffer, sizeof buffer);
      ::_exit(n > 0 ? 0 : 1);
    }
    EXPECT_TRUE(eventually([&] { return vfs.waiting > 0; }));
    ::kill(child, SIGKILL);
    int status = 0;
    EXPECT_TRUE(eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; }));
    EXPECT_TRUE(WIFSIGNALED(status));
  }
  vfs.release_blocked(node);
}

TEST_F(SessionLife, ARequestEndsByItsDeadline) {
  const auto polite = vfs.add_file(vfs::kRootNode, "polite", "x");
  const auto hung = vfs.add_file(vfs::kRootNode, "hung", "x");
  vfs.block(polite, ErrorCode::kWouldWaitStore);
  vfs.block(hung, ErrorCode::kWouldWaitDevice);
  SessionOptions options;
  options.timeout = 300ms;
  ASSERT_NO_FATAL_FAILURE(mount(options));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(read_file(dir / "polite"), "errno " + std::to_string(EIO));
  vfs.deaf = true;  // the disk hangs: nothing below answers any more
  EXPECT_EQ(read_file(dir / "hung"), "errno " + std::to_string(EIO));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  EXPECT_TRUE(eventually([&] { return metric("thermocline_fuse_answers_total{by=\"deadline\"}") >= 1; }));
  vfs.deaf = false;
  vfs.release_blocked(polite);
  vfs.release_blocked(hung);
  EXPECT_TRUE(eventually([&] { return vfs.open_handles() == 0; }));
}

TEST_F(SessionLife, UnmountWhileAReadIsPendingEndsEverything) {
  const auto node = vfs.add_file(vfs::kRootNode, "f", pattern(1u << 20));
  vfs.block(node, ErrorCode::kWouldWaitStore);
  std::atomic<int> ended{0};
  SessionOptions options;
  options.on_end = [&] { ++ended; };
  ASSERT_NO_FATAL_FAILURE(mount(options));
  std::string seen;
  std::thread reader([&] { seen = read_file(dir / "f"); });
  EXPECT_TRUE(eventually([&] { return vfs.waiting > 0; }));
  const auto start = std::chrono::steady_clock::now();
  const auto busy = unmount(dir.path(), false);
  ASSERT_FALSE(busy.has_value());
  EXPECT_EQ(busy.error().code(), ErrorCode::kBusy);
  EXPECT_NE(busy.error().message().find("fuser -vm"), std::string_view::npos);
  ASSERT_TRUE(unmount(dir.path(), true).has_value());
  session->stop();
  reader.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  EXPECT_TRUE(seen.starts_with("errno")) << seen.size();
  EXPECT_EQ(ended, 1);
  EXPECT_TRUE(session->ended());
}

TEST_F(SessionLife, UnmountEndsTheSessionByItself) {
  vfs.add_file(vfs::kRootNode, "f", "x");
  std::atomic<int> ended{0};
  SessionOptions options;
  options.on_end = [&] { ++ended; };
  ASSERT_NO_FATAL_FAILURE(mount(options));
  EXPECT_EQ(read_file(dir / "f"), "x");
  EXPECT_FALSE(session->ended());
  ASSERT_TRUE(unmount(dir.path(), false).has_value());
  session->wait();
  EXPECT_EQ(ended, 1);
  session->stop();
  session->stop();
  EXPECT_EQ(ended, 1);
}

/// The one who must answer for a hung disk may itself not hang on what the hung request holds: here its folder's lock.
TEST_F(SessionLife, AnInvalidationThatWaitsForAHungLookupDoesNotHoldUpItsDeadline) {
  const auto folder = vfs.add_dir(vfs::kRootNode, "d");
  vfs.add_file(folder, "f", "x");
  vfs.block(folder, ErrorCode::kWouldWaitDevice);
  vfs.deaf = true;
  SessionOptions options;
  options.timeout = 500ms;
  ASSERT_NO_FATAL_FAILURE(mount(options));
  std::string seen;
  std::thread looker([&] { seen = read_file(dir / "d/f"); });
  EXPECT_TRUE(eventually([&] { return vfs.waiting > 0; }));
  vfs.tell_kernel(folder, "f");
  const auto start = std::chrono::steady_clock::now();
  looker.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  EXPECT_EQ(seen, "errno " + std::to_string(EIO));
  vfs.deaf = false;
  vfs.release_blocked(folder);
}

TEST_F(SessionLife, StoppingUnderAMountThatIsInUseEndsToo) {
  vfs.add_file(vfs::kRootNode, "f", "x");
  ASSERT_NO_FATAL_FAILURE(mount());
  const UniqueFd open(::open((dir / "f").c_str(), O_RDONLY));
  ASSERT_TRUE(open.valid());
  session->stop();  // nobody unmounted: serving threads are woken
  EXPECT_TRUE(session->ended());
  struct stat info{};
  EXPECT_EQ(::stat((dir / "never asked for").c_str(), &info), -1);
  EXPECT_EQ(errno, ENOTCONN);
}

TEST_F(SessionLife, DebugLinesTellEachOperation) {
  const MountDir logs;
  const std::string file = logs / "log";
  log::Options target;
  target.target = file;
  ASSERT_TRUE(log::configure(target).has_value());
  vfs.add_file(vfs::kRootNode, "a\nb", "hello");
  ASSERT_NO_FATAL_FAILURE(mount());
  log::set_channel(log::Channel::kFuse, true);
  EXPECT_EQ(read_file(dir / "a\nb"), "hello");
  EXPECT_EQ(read_file(dir / "denied"), "errno " + std::to_string(EACCES));
  std::string text;
  // Lines are written after the answer.
  EXPECT_TRUE(eventually([&] {
    std::ifstream in(file);
    text = std::string{std::istreambuf_iterator<char>(in), {}};
    const std::string_view parts[] = {"path='node 1/a?b' node=1", "denied'", "op=OPEN", "op=READ", "op=RELEASE", "result=13"};
    return std::all_of(std::begin(parts), std::end(parts), [&](auto part) { return text.find(part) != std::string::npos; });
  })) << text;
  log::set_channel(log::Channel::kFuse, false);
  ASSERT_TRUE(unmount(dir.path(), false).has_value());
  session->stop();
  ASSERT_TRUE(log::configure({}).has_value());
  ::unlink(file.c_str());
}

}  // namespace
}  // namespace thermo::fuse::testing
