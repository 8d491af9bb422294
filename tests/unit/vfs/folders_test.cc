#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/rng.h"
#include "unit/vfs/vfs_fixture.h"
#include "vfs/dir_handle.h"

namespace thermo::vfs {
namespace {

class Folders : public VfsFixture {
 protected:
  static std::string name(int i) {
    char text[16];
    std::snprintf(text, sizeof text, "n%05d", i);
    return text;
  }
  void fill(int count) {
    for (int i = 0; i < count; ++i) put("d/" + name(i), "x");
    d_ = find(kRootNode, "d").node;
    handle_ = *vfs_->open_dir(ctx_, d_);
  }
  std::vector<std::string> walk(std::uint64_t cookie, std::size_t batch) {
    std::vector<std::string> names;
    for (;;) {
      const auto part = list(d_, handle_, cookie, batch);
      EXPECT_TRUE(part);
      if (!part || part->empty()) return names;
      for (const auto& e : *part) names.push_back(e.name);
      cookie = part->back().cookie;
    }
  }
  NodeId d_ = 0;
  HandleId handle_ = 0;
};

TEST_F(Folders, DotsFirstThenNamesInOrder) {
  put("d/b", "1");
  put("d/a/x", "2");
  d_ = find(kRootNode, "d").node;
  handle_ = *vfs_->open_dir(ctx_, d_);
  const auto all = *list(d_, handle_, 0, 100);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].name, ".");
  EXPECT_EQ(all[0].entry.node, d_);
  EXPECT_EQ(all[1].name, "..");
  EXPECT_EQ(all[1].entry.node, kRootNode);
  EXPECT_EQ(all[2].name, "a");
  EXPECT_EQ(all[3].name, "b");
  EXPECT_EQ(all[3].entry.node, find(d_, "b").node);
  EXPECT_EQ(all[3].entry.valid, kTtl);
  EXPECT_EQ(all[3].entry.attr.size, 1u);
}

TEST_F(Folders, EveryBatchSizeGivesEveryNameOnce) {
  fill(700);
  std::vector<std::string> want{".", ".."};
  for (int i = 0; i < 700; ++i) want.push_back(name(i));
  for (std::size_t batch : {1u, 2u, 3u, 255u, 256u, 257u, 258u, 1000u}) EXPECT_EQ(walk(0, batch), want) << batch;
}

TEST_F(Folders, ExactlyOneChunkEnds) {
  fill(static_cast<int>(DirHandle::kChunk));
  EXPECT_EQ(walk(0, 1000).size(), DirHandle::kChunk + 2);
  EXPECT_TRUE(list(d_, handle_, 100'000, 10)->empty());
}

TEST_F(Folders, ListingIsRememberedForOpen) {
  fill(10);
  const auto all = *list(d_, handle_, 0, 100);
  const int before = view_->calls;
  vfs_->release(open(all[5].entry.node));
  EXPECT_EQ(view_->calls, before);
}

TEST_F(Folders, SeekToAnyCookieThatWasHandedOut) {
  constexpr int kNames = 1500;
  fill(kNames);
  std::map<std::uint64_t, int> next;  // cookie -> ordinal of the entry that follows
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Rng rng(seed);
    next[0] = -2;
    std::uint64_t cookie = 0;
    for (int step = 0; step < 120; ++step) {
      if (rng.chance(0.5)) {
        auto at = next.begin();
        std::advance(at, static_cast<long>(rng.below(next.size())));
        cookie = at->first;
      }
      const int expect = next.at(cookie);
      const auto part = list(d_, handle_, cookie, 1 + rng.below(400));
      ASSERT_TRUE(part);
      int ordinal = expect;
      for (const auto& e : *part) {
        ASSERT_EQ(e.name, ordinal == -2 ? "." : ordinal == -1 ? ".." : name(ordinal));
        next[e.cookie] = ++ordinal;
        cookie = e.cookie;
      }
      if (part->empty()) {
        ASSERT_EQ(expect, kNames);
      }
    }
  }
}

TEST_F(Folders, PositionOfAnEarlierProcessWorks) {
  fill(1000);
  const auto part = *list(d_, handle_, 0, 602);
  start();
  const auto rest = walk(part.back().cookie, 100);
  ASSERT_EQ(rest.size(), 400u);
  EXPECT_EQ(rest.front(), name(600));
}

TEST_F(Folders, RewindListsAnewAndGoingOnIsByName) {
  fill(600);
  const auto part = *list(d_, handle_, 0, 2 + 300);
  remove("d/" + name(3));
  remove("d/" + name(299));
  put("d/a-first", "x");
  pass_ttl();
  const auto rest = walk(part.back().cookie, 50);  // what stayed is seen once, whatever came or went before it
  ASSERT_EQ(rest.size(), 300u);
  EXPECT_EQ(rest.front(), name(300));
  const auto again = walk(0, 100);
  EXPECT_EQ(again.size(), 2 + 600u - 2 + 1);
  EXPECT_EQ(again[2], "a-first");
}

TEST_F(Folders, ErrorsAreErrorsNotTheEnd) {
  fill(600);
  view_->list_fails_after = 0;
  EXPECT_EQ(code_of(list(d_, handle_, 0, 100)), ErrorCode::kThrottled);
  view_->list_fails_after = 100;
  const auto part = list(d_, handle_, 0, 1000);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->size(), 102u);
  view_->list_fails_after = 0;
  EXPECT_EQ(code_of(list(d_, handle_, part->back().cookie, 1000)), ErrorCode::kThrottled);
  view_->list_fails_after.reset();
  EXPECT_EQ(walk(part->back().cookie, 1000).size(), 500u);
}

TEST_F(Folders, DoesNotWaitWhenToldSo) {
  fill(10);
  pass_ttl();
  const auto visit = [](const DirEntry&) { return true; };
  EXPECT_EQ(code_of(vfs_->read_dir(ctx_.waiting(false), d_, handle_, 0, visit)), ErrorCode::kWouldWaitStore);
  EXPECT_TRUE(vfs_->read_dir(ctx_, d_, handle_, 0, visit));
}

TEST_F(Folders, RemovedFolderSaysSo) {
  fill(1);
  put("other", "x");
  remove("d/" + name(0));
  pass_ttl();
  EXPECT_EQ(code_of(list(d_, handle_, 0, 10)), ErrorCode::kNotFound);
  vfs_->release_dir(handle_);
  EXPECT_EQ(vfs_->open_handles(), 0u);
}

TEST_F(Folders, EmptyRootIsAFolderWithDots) {
  handle_ = *vfs_->open_dir(ctx_, kRootNode);
  EXPECT_EQ(list(kRootNode, handle_, 0, 10)->size(), 2u);
  put("f", "x");
  pass_ttl();
  EXPECT_EQ(code_of(vfs_->open_dir(ctx_, find(kRootNode, "f").node)), ErrorCode::kNotDirectory);
}

}  // namespace
}  // namespace thermo::vfs
