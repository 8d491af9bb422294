#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/vfs/vfs_fixture.h"

namespace thermo::vfs {
namespace {

class Files : public VfsFixture {};

TEST_F(Files, ReadsAndClips) {
  put("f", "hello");
  put("empty", "");
  const auto f = find(kRootNode, "f");
  const auto handle = open(f.node);
  EXPECT_EQ(*read(f.node, handle), "hello");
  EXPECT_EQ(*read(f.node, handle, 3, 100), "lo");
  EXPECT_EQ(*read(f.node, handle, 5, 100), "");
  const auto e = find(kRootNode, "empty");
  EXPECT_EQ(*read(e.node, open(e.node)), "");
}

TEST_F(Files, OnlyReadingIsAllowedAndFoldersAreNotFiles) {
  put("d/f", "x");
  const auto d = find(kRootNode, "d");
  const auto f = find(d.node, "f");
  for (int flags : {O_WRONLY, O_RDWR, O_TRUNC, O_CREAT, O_RDWR | O_APPEND}) {
    EXPECT_EQ(code_of(vfs_->open(ctx_, f.node, flags)), ErrorCode::kReadOnly) << flags;
  }
  EXPECT_TRUE(vfs_->open(ctx_, f.node, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  EXPECT_EQ(code_of(vfs_->open(ctx_, d.node, O_RDONLY)), ErrorCode::kIsDirectory);
  EXPECT_EQ(code_of(vfs_->read(ctx_, d.node, 77, {0, 1}, {}, false)), ErrorCode::kIsDirectory);
}

TEST_F(Files, OpenOfAKnownFileAsksNobody) {
  put("f", "x");
  const auto f = find(kRootNode, "f");
  const int before = view_->calls;
  for (int i = 0; i < 100; ++i) vfs_->release(open(f.node));
  EXPECT_EQ(view_->calls, before);
  EXPECT_EQ(vfs_->open_handles(), 0u);
}

TEST_F(Files, HandlesAreCounted) {
  put("f", "x");
  const auto f = find(kRootNode, "f");
  const auto a = open(f.node), b = open(f.node);
  EXPECT_NE(a, b);
  EXPECT_EQ(vfs_->open_handles(), 2u);
  vfs_->release(a);
  vfs_->release(a);
  vfs_->release(12345);
  EXPECT_EQ(vfs_->open_handles(), 1u);
  EXPECT_EQ(*read(f.node, b), "x");
}

TEST_F(Files, ReplacedWhileOpenGivesOldPagesOrStaleAndTheNextOpenTheNewVersion) {
  put("d/f", std::string(3u << 20, 'a'));
  const auto d = find(kRootNode, "d");
  const auto f = find(d.node, "f");
  const auto handle = open(f.node);
  EXPECT_EQ((*read(f.node, handle, 0, 100)), std::string(100, 'a'));
  put("d/f", std::string(3u << 20, 'b'));
  EXPECT_EQ((*read(f.node, handle, 200, 100)), std::string(100, 'a'));  // this page is here
  EXPECT_EQ(code_of(read(f.node, handle, 2u << 20, 100)), ErrorCode::kStale);
  EXPECT_TRUE(view_->expired_keys.contains("d/f"));
  EXPECT_TRUE(kernel_.told(d.node, "f"));
  // The kernel still believes the old node for the rest of the TTL: it must not be opened again.
  EXPECT_EQ(code_of(vfs_->open(ctx_, f.node, 0)), ErrorCode::kStale);
  const auto now = find(d.node, "f");
  EXPECT_NE(now.node, f.node);
  const auto again = open(now.node);
  EXPECT_EQ((*read(now.node, again, 2u << 20, 100)), std::string(100, 'b'));
  // The old handle goes on answering for its own version, and reports only once.
  EXPECT_EQ((*read(f.node, handle, 200, 100)), std::string(100, 'a'));
  view_->expired_keys.clear();
  EXPECT_EQ(code_of(read(f.node, handle, 2u << 20, 100)), ErrorCode::kStale);
  EXPECT_TRUE(view_->expired_keys.empty());
  EXPECT_EQ(vfs_->getattr(ctx_, f.node, handle)->attr.ino, f.attr.ino);
  // fstat() comes without the handle; without any handle the node is gone.
  EXPECT_EQ(vfs_->getattr(ctx_, f.node, 0)->attr.ino, f.attr.ino);
  vfs_->release(handle);
  EXPECT_EQ(code_of(vfs_->getattr(ctx_, f.node, 0)), ErrorCode::kStale);
}

TEST_F(Files, DeletedWhileOpenIsStaleNotAbsent) {
  put("f", std::string(3u << 20, 'a'));
  const auto f = find(kRootNode, "f");
  const auto handle = open(f.node);
  remove("f");
  EXPECT_EQ(code_of(read(f.node, handle)), ErrorCode::kStale);
  EXPECT_EQ(code_of(vfs_->open(ctx_, f.node, 0)), ErrorCode::kStale);
  EXPECT_EQ(find(kRootNode, "f").node, 0u);
  EXPECT_EQ(vfs_->getattr(ctx_, f.node, 0)->attr.size, 3u << 20);  // fstat() of what is still open
}

TEST_F(Files, SuspicionWaitsForTheStoreAndEndsWithIt) {
  put("f", std::string(3u << 20, 'a'));
  const auto f = find(kRootNode, "f");
  const auto handle = open(f.node);
  remove("f");
  EXPECT_EQ(code_of(read(f.node, handle)), ErrorCode::kStale);
  EXPECT_EQ(code_of(vfs_->open(ctx_.waiting(false), f.node, 0)), ErrorCode::kWouldWaitStore);
  view_->store_failure = ErrorCode::kUnavailable;
  EXPECT_EQ(code_of(vfs_->open(ctx_, f.node, 0)), ErrorCode::kUnavailable);
  view_->store_failure.reset();
  put("f", std::string(3u << 20, 'a'));  // the same bytes again: the same version
  EXPECT_EQ(read(f.node, open(f.node))->size(), 1u << 20);
}

TEST_F(Files, HandleOfAnEarlierProcessIsOpenedAgain) {
  put("f", "hello");
  const auto f = find(kRootNode, "f");
  const auto handle = open(f.node);
  start();
  EXPECT_EQ(*read(f.node, handle, 1, 3), "ell");
  EXPECT_EQ(vfs_->open_handles(), 1u);
  EXPECT_EQ(*read(f.node, handle, 1, 3), "ell");
  EXPECT_EQ(vfs_->open_handles(), 1u);
  vfs_->release(handle);
  EXPECT_EQ(vfs_->open_handles(), 0u);
}

TEST_F(Files, HandleOfAnEarlierProcessOnAReplacedFileIsStale) {
  put("f", "hello");
  const auto f = find(kRootNode, "f");
  const auto handle = open(f.node);
  start();
  put("f", "other");
  pass_ttl();
  const auto now = find(kRootNode, "f");
  EXPECT_EQ(code_of(read(f.node, handle)), ErrorCode::kStale);
  EXPECT_EQ(vfs_->open_handles(), 0u);
  EXPECT_EQ(*read(now.node, open(now.node)), "other");
}

TEST_F(Files, AHandleCountsOnlyWithItsNode) {
  put("f", "hello");
  put("g", "other");
  const auto f = find(kRootNode, "f"), g = find(kRootNode, "g");
  const auto handle = open(f.node);
  EXPECT_EQ(*read(g.node, handle), "other");  // an id that collides with one of an earlier process
  EXPECT_EQ(vfs_->getattr(ctx_, f.node, handle)->attr.ino, f.attr.ino);
}

TEST_F(Files, StoreTroubleIsNotStale) {
  put("f", "hello");
  const auto f = find(kRootNode, "f");
  const auto handle = open(f.node);
  EXPECT_EQ(code_of(vfs_->read(ctx_.waiting(false), f.node, handle, {0, 5}, {}, false)), ErrorCode::kWouldWaitStore);
  EXPECT_EQ(vfs_->read(ctx_, f.node, handle, {0, 5}, {}, true)->size(), 5u);
  EXPECT_TRUE(view_->expired_keys.empty());
}

TEST_F(Files, ExtendedAttributes) {
  put("d/f", std::string((2u << 20) + 5, 'x'));
  const auto d = find(kRootNode, "d");
  const auto f = find(d.node, "f");
  EXPECT_EQ(*vfs_->get_xattr(ctx_, f.node, "user.thermo.residency"), "0/2097157");
  (void)read(f.node, open(f.node), 0, 10);
  EXPECT_EQ(*vfs_->get_xattr(ctx_, f.node, "user.thermo.residency"), "1048576/2097157");
  const auto entry = std::get<catalog::File>(*vfs_->resolve(ctx_, "d/f"));
  EXPECT_EQ(*vfs_->get_xattr(ctx_, f.node, "user.thermo.etag"), entry.etag);
  EXPECT_EQ(*vfs_->get_xattr(ctx_, f.node, "user.thermo.version"), vfs_->object_ref(entry).version.hex());
  EXPECT_EQ(*vfs_->get_xattr(ctx_, f.node, "user.thermo.store"), "s3://bucket/d/f");
  EXPECT_EQ(*vfs_->get_xattr(ctx_, d.node, "user.thermo.store"), "s3://bucket/d/");
  EXPECT_EQ(*vfs_->get_xattr(ctx_, kRootNode, "user.thermo.admin"), "/run/thermo.sock");
  for (const auto* name : {"user.thermo.admin", "user.thermo.skipped", "user.other", "security.capability"}) {
    EXPECT_EQ(code_of(vfs_->get_xattr(ctx_, f.node, name)), ErrorCode::kNoData) << name;
  }
  EXPECT_EQ(code_of(vfs_->get_xattr(ctx_, d.node, "user.thermo.admin")), ErrorCode::kNoData);
  EXPECT_EQ(code_of(vfs_->get_xattr(ctx_, d.node, "user.thermo.skipped")), ErrorCode::kNoData);
  view_->skipped_count = 3;
  EXPECT_EQ(*vfs_->get_xattr(ctx_, d.node, "user.thermo.skipped"), "3");
  for (const NodeId node : {f.node, d.node, kRootNode}) {
    const auto names = *vfs_->list_xattr(ctx_, node);
    for (const auto& name : names) EXPECT_TRUE(vfs_->get_xattr(ctx_, node, name)) << name;
  }
  EXPECT_EQ(vfs_->list_xattr(ctx_, f.node)->size(), 4u);
}

TEST_F(Files, StatFsIsRoomy) {
  const auto s = vfs_->statfs();
  EXPECT_GE(s.free_bytes, 1ull << 50);
  EXPECT_GE(s.total_bytes, s.free_bytes);
  EXPECT_GT(s.files, 0u);
}

}  // namespace
}  // namespace thermo::vfs
