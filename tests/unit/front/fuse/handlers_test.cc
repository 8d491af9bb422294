// The table of operations without a mount.

#include "front/fuse/handlers.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "base/log.h"
#include "base/rng.h"
#include "fake_vfs.h"
#include "front/fuse/reply.h"
#include "front/fuse/server.h"

namespace thermo::fuse::testing {
namespace {

class FuseHandlers : public ::testing::Test {
 protected:
  static Request request(Opcode opcode, vfs::NodeId node) {
    Request out;
    out.header.opcode = static_cast<std::uint32_t>(opcode);
    out.header.nodeid = node;
    return out;
  }
  Result<void> run(const Request& what) {
    answer = Answer();
    return handlers.run(RequestContext{}, what, false, scratch, answer);
  }
  template <class T>
  T fixed() const {
    EXPECT_EQ(answer.fixed_size, sizeof(T));
    T value{};
    std::memcpy(&value, answer.fixed.data(), sizeof value);
    return value;
  }

  FakeVfs vfs;
  Negotiated agreed{kProtocolMinor, ~0ull, 131072, 1u << 20};
  Handlers handlers{vfs, agreed};
  Scratch scratch;
  Answer answer;
};

TEST_F(FuseHandlers, EveryWritingOperationIsErofs) {
  for (const auto opcode :
       {Opcode::kSetattr, Opcode::kSymlink, Opcode::kMknod, Opcode::kMkdir, Opcode::kUnlink, Opcode::kRmdir, Opcode::kRename,
        Opcode::kRename2, Opcode::kLink, Opcode::kWrite, Opcode::kSetxattr, Opcode::kRemovexattr, Opcode::kCreate,
        Opcode::kFallocate, Opcode::kCopyFileRange, Opcode::kCopyFileRange64, Opcode::kTmpfile}) {
    ASSERT_TRUE(run(request(opcode, 1)).has_value());
    EXPECT_EQ(answer.error, EROFS) << opcode_name(static_cast<std::uint32_t>(opcode));
  }
}

TEST_F(FuseHandlers, WhatTheKernelDoesBetterItselfIsEnosys) {
  for (const auto opcode :
       {Opcode::kAccess, Opcode::kStatx, Opcode::kLseek, Opcode::kPoll, Opcode::kBmap, Opcode::kGetlk, Opcode::kSetlk,
        Opcode::kSetlkw, Opcode::kSetupmapping, Opcode::kRemovemapping, static_cast<Opcode>(9999), static_cast<Opcode>(0)}) {
    ASSERT_TRUE(run(request(opcode, 1)).has_value());
    EXPECT_EQ(answer.error, ENOSYS) << static_cast<int>(opcode);
  }
  ASSERT_TRUE(run(request(Opcode::kIoctl, 1)).has_value());
  EXPECT_EQ(answer.error, ENOTTY);
}

TEST_F(FuseHandlers, ForgetsGetNoAnswer) {
  for (const auto opcode : {Opcode::kForget, Opcode::kBatchForget, Opcode::kNotifyReply}) {
    ASSERT_TRUE(run(request(opcode, 1)).has_value());
    EXPECT_TRUE(answer.none);
  }
}

TEST_F(FuseHandlers, NothingDirtyMeansFlushAndFsyncSucceed) {
  for (const auto opcode : {Opcode::kFlush, Opcode::kFsync, Opcode::kFsyncdir, Opcode::kSyncfs, Opcode::kDestroy}) {
    ASSERT_TRUE(run(request(opcode, 1)).has_value());
    EXPECT_EQ(answer.error, 0);
    EXPECT_EQ(answer.size(), 0u);
  }
}

TEST_F(FuseHandlers, LookupsSayNoInTwoWays) {
  auto lookup = request(Opcode::kLookup, vfs::kRootNode);
  lookup.args = NameArgs{"nothing"};
  ASSERT_TRUE(run(lookup).has_value());
  EXPECT_EQ(fixed<EntryOut>().nodeid, 0u);  // believed for a while
  EXPECT_EQ(fixed<EntryOut>().entry_valid, 3600u);
  vfs.valid_ns = 0;
  ASSERT_TRUE(run(lookup).has_value());
  EXPECT_EQ(answer.error, ENOENT);  // not to be kept
}

TEST_F(FuseHandlers, OpenKeepsPagesAndLeavesFlushOutWhereTheProtocolKnowsIt) {
  auto open = request(Opcode::kOpen, vfs.add_file(vfs::kRootNode, "f", "x"));
  open.args = OpenIn{O_RDONLY, 0};
  ASSERT_TRUE(run(open).has_value());
  EXPECT_EQ(fixed<OpenOut>().open_flags, kOpenKeepCache | kOpenNoFlush);
  EXPECT_EQ(fixed<OpenOut>().fh, answer.opened);
  Negotiated old = agreed;
  old.minor = 34;
  Handlers older(vfs, old);
  answer = Answer();
  ASSERT_TRUE(older.run(RequestContext{}, open, false, scratch, answer).has_value());
  EXPECT_EQ(fixed<OpenOut>().open_flags, kOpenKeepCache);
}

TEST_F(FuseHandlers, OldGenerationsAreStaleByPathOnly) {
  const auto node = vfs.add_file(vfs::kRootNode, "f", "one");
  auto open = request(Opcode::kOpen, node);
  open.args = OpenIn{O_RDONLY, 0};
  ASSERT_TRUE(run(open).has_value());
  const auto handle = answer.opened;
  vfs.replace(vfs::kRootNode, "f", "two!");
  auto getattr = request(Opcode::kGetattr, node);
  getattr.args = GetattrIn{0, 0, handle};  // the flag says that there is no handle
  EXPECT_EQ(run(getattr).error().code(), ErrorCode::kStale);
  EXPECT_EQ(run(open).error().code(), ErrorCode::kStale);
  getattr.args = GetattrIn{kGetattrHandle, 0, handle};
  ASSERT_TRUE(run(getattr).has_value());
  EXPECT_EQ(fixed<AttrOut>().attr.size, 3u);
}

TEST_F(FuseHandlers, ReadsOfAnySizeWorkAndAbsurdOnesAreRefused) {
  const auto node = vfs.add_file(vfs::kRootNode, "f", std::string(3u << 20, 'x'));
  auto open = request(Opcode::kOpen, node);
  open.args = OpenIn{O_RDONLY, 0};
  ASSERT_TRUE(run(open).has_value());
  auto read = request(Opcode::kRead, node);
  ReadIn in{};
  in.fh = answer.opened;
  in.size = 3u << 20;  // more than was negotiated
  in.offset = 1;
  read.args = in;
  ASSERT_TRUE(run(read).has_value());
  EXPECT_EQ(answer.size(), (3u << 20) - 1);
  in.offset = 5u << 20;
  read.args = in;
  ASSERT_TRUE(run(read).has_value());
  EXPECT_EQ(answer.size(), 0u);
  for (const std::uint64_t offset : {~0ull, 1ull << 63}) {
    in.offset = offset;
    read.args = in;
    EXPECT_EQ(run(read).error().code(), ErrorCode::kInvalidArgument);
  }
  in.offset = 0;
  in.size = ~0u;
  read.args = in;
  EXPECT_EQ(run(read).error().code(), ErrorCode::kInvalidArgument);
}

TEST_F(FuseHandlers, AFolderThatDoesNotFitAtAllIsAnError) {
  vfs.add_file(vfs::kRootNode, "f", "x");
  auto read = request(Opcode::kReaddir, vfs::kRootNode);
  ReadIn in{};
  in.size = 20;
  read.args = in;
  EXPECT_EQ(run(read).error().code(), ErrorCode::kInvalidArgument);
  in.size = 64;  // "." and "..": the rest is asked for next
  read.args = in;
  ASSERT_TRUE(run(read).has_value());
  EXPECT_EQ(answer.body.size(), 64u);
  in.offset = 3;  // past the end
  read.args = in;
  ASSERT_TRUE(run(read).has_value());
  EXPECT_EQ(answer.size(), 0u);
}

/// The server must survive any frame: answers go to a pipe here.
TEST_F(FuseHandlers, RandomFramesNeverCrashTheServer) {
  const auto file = vfs.add_file(vfs::kRootNode, "f", std::string(10'000, 'x'));
  const auto slow = vfs.add_file(vfs::kRootNode, "s", std::string(10'000, 'x'));
  vfs.slow(slow, ErrorCode::kWouldWaitStore);
  log::Options quiet;
  quiet.level = log::Level::kError;
  ASSERT_TRUE(log::configure(quiet).has_value());
  ThreadPool pool({"pool", 2, 16});
  metrics::Registry metrics;
  SessionOptions options;
  options.device_pool = options.read_pool = &pool;
  options.metrics = &metrics;
  const UniqueFd sink(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  {
    Server server(vfs, agreed, options);
    Rng rng(77);
    for (int round = 0; round < 50'000; ++round) {
      std::vector<std::byte> frame(sizeof(InHeader) + rng.below(64));
      for (auto& byte : frame) byte = static_cast<std::byte>(rng.chance(0.5) ? 0 : rng.below(4));
      InHeader header{};
      header.len = static_cast<std::uint32_t>(frame.size());
      header.opcode = static_cast<std::uint32_t>(rng.below(kOpcodeLimit + 1));
      header.unique = static_cast<std::uint64_t>(round) * 2 + 2;
      const vfs::NodeId nodes[] = {vfs::kRootNode, file, slow, 12345, 0};
      header.nodeid = nodes[rng.below(5)];
      std::memcpy(frame.data(), &header, sizeof header);
      server.serve(sink.get(), frame, scratch);
    }
    server.close();
    server.drain();
    EXPECT_EQ(server.waiting(), 0u);
  }
  quiet.level = log::Level::kInfo;
  ASSERT_TRUE(log::configure(quiet).has_value());
  EXPECT_GT(metrics.snapshot()["thermocline_fuse_ops_total{op=\"lookup\"}"], 100);
}

}  // namespace
}  // namespace thermo::fuse::testing
