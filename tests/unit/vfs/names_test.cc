#include <gtest/gtest.h>
#include <sys/stat.h>

#include "unit/vfs/vfs_fixture.h"
#include "vfs/node_table.h"

namespace thermo::vfs {
namespace {

class Names : public VfsFixture {};
class NamesBelowPrefix : public VfsFixture {
 protected:
  NamesBelowPrefix() : VfsFixture("deep/er/") {}
};

TEST_F(Names, FileAndFolderAttributes) {
  put("d/f", std::string(1000, 'x'));
  const auto d = find(kRootNode, "d");
  EXPECT_EQ(d.attr.mode, static_cast<std::uint32_t>(S_IFDIR | 0755));
  EXPECT_EQ(d.attr.nlink, 1u);
  EXPECT_EQ(d.attr.mtime, 1'600'000'000'000'000'000);
  EXPECT_EQ(d.valid, kTtl);
  const auto f = find(d.node, "f");
  EXPECT_EQ(f.attr.mode, static_cast<std::uint32_t>(S_IFREG | 0644));
  EXPECT_EQ(f.attr.size, 1000u);
  EXPECT_EQ(f.attr.blocks, 2u);
  EXPECT_EQ(f.attr.uid, 9001u);
  EXPECT_EQ(f.attr.gid, 9003u);
  EXPECT_EQ(f.attr.mtime, clock_.wall());
  EXPECT_EQ(node_generation(f.node), 1u);
  clock_.advance(std::chrono::seconds(20));
  EXPECT_EQ(vfs_->getattr(ctx_, f.node, 0)->valid, kTtl - std::chrono::seconds(20));
}

TEST_F(Names, AbsentNameIsAnAnswerAndATroubledStoreIsNot) {
  put("f", "x");
  const auto none = find(kRootNode, "g");
  EXPECT_EQ(none.node, 0u);
  EXPECT_EQ(none.valid, kTtl);
  pass_ttl();
  view_->store_failure = ErrorCode::kThrottled;
  EXPECT_EQ(code_of(vfs_->lookup(ctx_, kRootNode, "g")), ErrorCode::kThrottled);
  EXPECT_EQ(code_of(vfs_->lookup(ctx_.waiting(false), kRootNode, "g")), ErrorCode::kWouldWaitStore);
}

TEST_F(Names, DotsAndFilesAsParents) {
  put("d/e/f", "x");
  const auto d = find(kRootNode, "d");
  const auto e = find(d.node, "e");
  EXPECT_EQ(find(e.node, "..").node, d.node);
  EXPECT_EQ(find(e.node, ".").node, e.node);
  EXPECT_EQ(find(d.node, "..").node, kRootNode);
  EXPECT_EQ(find(kRootNode, "..").node, kRootNode);
  EXPECT_EQ(code_of(vfs_->lookup(ctx_, find(e.node, "f").node, "x")), ErrorCode::kNotDirectory);
}

TEST_F(Names, UnknownNodesAreStale) {
  put("f", "x");
  const auto f = find(kRootNode, "f");
  for (const NodeId node : {NodeId{0}, NodeId{2}, NodeId{5} << kGenerationBits, NodeId{999} << kGenerationBits | 1, f.node + 1,
                            f.node & ~((NodeId{1} << kGenerationBits) - 1)}) {
    EXPECT_EQ(code_of(vfs_->getattr(ctx_, node, 0)), ErrorCode::kStale) << node;
    EXPECT_EQ(code_of(vfs_->open(ctx_, node, 0)), ErrorCode::kStale) << node;
    EXPECT_EQ(code_of(vfs_->lookup(ctx_, node, "x")), ErrorCode::kStale) << node;
  }
}

TEST_F(Names, ForeignVersionIsANewGenerationWithAnotherIno) {
  put("d/f", "one");
  const auto d = find(kRootNode, "d");
  const auto old = find(d.node, "f");
  put("d/f", "two!");
  EXPECT_EQ(find(d.node, "f").node, old.node);  // inside the TTL it is still believed
  pass_ttl();
  EXPECT_EQ(code_of(vfs_->getattr(ctx_, old.node, 0)), ErrorCode::kStale);
  EXPECT_TRUE(kernel_.told(d.node, "f"));
  const auto now = find(d.node, "f");
  EXPECT_EQ(node_number(now.node), node_number(old.node));
  EXPECT_EQ(node_generation(now.node), 2u);
  EXPECT_NE(now.attr.ino, old.attr.ino);
  EXPECT_EQ(now.attr.size, 4u);
  EXPECT_EQ(code_of(vfs_->open(ctx_, old.node, 0)), ErrorCode::kStale);
}

TEST_F(Names, NodesAndInosSurviveARestart) {
  put("d/f", "one");
  const auto d = find(kRootNode, "d");
  const auto f = find(d.node, "f");
  start();
  EXPECT_EQ(vfs_->getattr(ctx_, f.node, 0)->attr.ino, f.attr.ino);
  EXPECT_EQ(find(d.node, "f").node, f.node);
  EXPECT_EQ(*read(f.node, open(f.node)), "one");
}

TEST_F(Names, RemovedFileIsStaleByNodeAndAbsentByName) {
  put("d/f", "one");
  put("d/g", "one");
  const auto d = find(kRootNode, "d");
  const auto f = find(d.node, "f");
  remove("d/f");
  pass_ttl();
  EXPECT_EQ(code_of(vfs_->getattr(ctx_, f.node, 0)), ErrorCode::kStale);
  EXPECT_EQ(find(d.node, "f").node, 0u);
  EXPECT_TRUE(kernel_.told(d.node, "f"));
}

TEST_F(Names, ObjectHiddenByAFolderIsReachedByItsOtherName) {
  put("a", "object");
  put("a/b", "below");
  const auto folder = find(kRootNode, "a");
  EXPECT_TRUE(S_ISDIR(folder.attr.mode));
  const auto object = find(kRootNode, ".object:a");
  const auto handle = open(object.node);
  EXPECT_EQ(*read(object.node, handle), "object");
  vfs_->release(handle);  // while it is open, its version's attributes are answered
  pass_ttl();
  EXPECT_EQ(vfs_->getattr(ctx_, object.node, 0)->node, object.node);
  put("a", "object two");
  pass_ttl();
  EXPECT_EQ(code_of(vfs_->getattr(ctx_, object.node, 0)), ErrorCode::kStale);
}

TEST_F(Names, InvalidationFindsParentsThatAreNotRemembered) {
  put("d/f", "one");
  const auto d = find(kRootNode, "d");
  (void)find(d.node, "f");
  start();  // remembers nothing
  put("d/f", "two!");
  pass_ttl();
  (void)find(kRootNode, "x");
  for (int i = 0; i < 200 && !kernel_.told(d.node, "f"); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(kernel_.told(d.node, "f"));
  vfs_->set_kernel_cache(nullptr);
  const auto before = kernel_.calls().size();
  put("d/f", "three");
  pass_ttl();
  (void)find(kRootNode, "x");
  EXPECT_EQ(kernel_.calls().size(), before);
}

TEST_F(NamesBelowPrefix, RootIsThePrefix) {
  put("deep/er/f", "x");
  put("deep/other", "y");
  EXPECT_EQ(find(kRootNode, "f").attr.size, 1u);
  EXPECT_EQ(find(kRootNode, "other").node, 0u);
  EXPECT_EQ(find(kRootNode, "..").node, kRootNode);
  EXPECT_EQ(*vfs_->get_xattr(ctx_, find(kRootNode, "f").node, "user.thermo.store"), "s3://bucket/deep/er/f");
  EXPECT_EQ(*vfs_->get_xattr(ctx_, kRootNode, "user.thermo.store"), "s3://bucket/deep/er/");
  put("deep/er/f", "xx");
  pass_ttl();
  (void)find(kRootNode, "f");
  EXPECT_TRUE(kernel_.told(kRootNode, "f"));
}

TEST_F(Names, ResolveWalksPaths) {
  put("a/b/c", "x");
  EXPECT_EQ(std::get<catalog::Folder>(*vfs_->resolve(ctx_, "")).prefix, "");
  EXPECT_EQ(std::get<catalog::Folder>(*vfs_->resolve(ctx_, "/a//b/")).prefix, "a/b/");
  EXPECT_EQ(std::get<catalog::File>(*vfs_->resolve(ctx_, "a/./b/c")).key, "a/b/c");
  const auto missing = vfs_->resolve(ctx_, "a/nope/c");
  EXPECT_EQ(code_of(missing), ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message().find("'a/nope'"), std::string_view::npos);
  EXPECT_EQ(code_of(vfs_->resolve(ctx_, "a/b/c/d")), ErrorCode::kNotDirectory);
  EXPECT_EQ(code_of(vfs_->resolve(ctx_, "a/../b")), ErrorCode::kInvalidArgument);
}

TEST(NodeTableTest, IsBoundedAndKeepsWhatIsUsed) {
  NodeTable table(100);
  const auto file = [](catalog::Number n, std::uint32_t generation = 1) {
    catalog::File f;
    f.key = "k" + std::to_string(n);
    f.number = n;
    f.generation = generation;
    return std::make_shared<const NodeTable::Known>(NodeTable::Known{f, MonoTime::max()});
  };
  for (catalog::Number n = 16; n < 1016; ++n) {
    table.remember(file(n), true);
    ASSERT_NE(table.find(16).known, nullptr);
  }
  EXPECT_EQ(table.size(), 100u);
  EXPECT_EQ(table.find(17).known, nullptr);
  EXPECT_EQ(table.find_key("k17"), nullptr);
  EXPECT_NE(table.find_key("k1015"), nullptr);

  table.remember(file(16, 3), false);
  table.remember(file(16, 2), false);  // late news
  EXPECT_EQ(std::get<catalog::File>(table.find(16).known->entry).generation, 3u);

  table.suspect(std::get<catalog::File>(file(16, 3)->entry));
  EXPECT_EQ(table.find(16).suspect_key, "k16");
  table.remember(file(16, 3), false);  // a listing from before: not believed
  EXPECT_EQ(table.find(16).suspect_key, "k16");
  table.remember(file(16, 4), false);
  EXPECT_NE(table.find(16).known, nullptr);
  table.suspect(std::get<catalog::File>(file(16, 3)->entry));  // known to be gone already
  EXPECT_NE(table.find(16).known, nullptr);
  for (catalog::Number n = 2000; n < 2000 + 2 * NodeTable::kMaxSuspects; ++n) {
    table.suspect(std::get<catalog::File>(file(n)->entry));
  }
  EXPECT_LE(table.size(), 100u);
}

}  // namespace
}  // namespace thermo::vfs
