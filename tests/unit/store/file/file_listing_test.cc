#include <algorithm>
#include <set>
#include <thread>

#include "base/rng.h"
#include "store/file/file_store.h"
#include "store/file/folder_cache.h"
#include "store/memory/memory_store.h"
#include "unit/store/file/temp_tree.h"
#include "unit/store/store_testing.h"

namespace thermo::store {
namespace {

using namespace testing;  // NOLINT: test helpers

class FileListing : public ::testing::Test {
 protected:
  void SetUp() override { store_ = *make_file_store(tree_.root()); }
  TempTree tree_;
  ObjectStorePtr store_;
};

TEST_F(FileListing, WholeKeysInByteOrder) {
  for (const char* key : {"a-b", "a!", "a/1", "a/x/2", "ab", "b", "q!c", "q/z", "q-", "dt=2024-01-01/s=A/p.parquet", "\xff\xfe"})
    tree_.file(key);
  EXPECT_EQ(list_all(*store_, {}),
            (Names{"a!", "a-b", "a/1", "a/x/2", "ab", "b", "dt=2024-01-01/s=A/p.parquet", "q!c", "q-", "q/z", "\xff\xfe"}));
  EXPECT_EQ(list_all(*store_, listing("", "/")),
            (Names{"a!", "a-b", "<a/>", "ab", "b", "<dt=2024-01-01/>", "q!c", "q-", "<q/>", "\xff\xfe"}));
  EXPECT_EQ(list_all(*store_, listing("a/", "/")), (Names{"a/1", "<a/x/>"}));
  EXPECT_EQ(list_all(*store_, listing("a")), (Names{"a!", "a-b", "a/1", "a/x/2", "ab"}));
  EXPECT_EQ(list_all(*store_, listing("a/x")), Names{"a/x/2"});
  EXPECT_EQ(list_all(*store_, listing("a/x", "/")), Names{"<a/x/>"});
  EXPECT_EQ(list_all(*store_, listing("b/")), Names{}) << "a file holds nothing";
  EXPECT_EQ(list_all(*store_, listing("nothing/at/all")), Names{});
  for (const char* odd : {"../", "/", "a//", "./", "a/../", "a/x/2/"}) EXPECT_EQ(list_all(*store_, listing(odd)), Names{}) << odd;
}

TEST_F(FileListing, EmptyFoldersAreMarkers) {
  tree_.folder("d/e/f");
  tree_.folder("g");
  tree_.file("h");
  EXPECT_EQ(list_all(*store_, {}), (Names{"d/e/f/", "g/", "h"}));
  EXPECT_EQ(list_all(*store_, listing("", "/")), (Names{"<d/>", "<g/>", "h"}));
  EXPECT_EQ(list_all(*store_, listing("g/", "/")), Names{"g/"});
  EXPECT_EQ(list_all(*store_, listing("g/", "", "g/")), Names{});
  const auto page = store_->list_page({}, listing("g/"));
  ASSERT_EQ(page->objects.size(), 1U);
  EXPECT_EQ(page->objects[0].size, 0U);
  EXPECT_EQ(page->objects[0].etag, store_->head({}, "g/")->etag);
}

TEST_F(FileListing, ListedVersionsCanBeRead) {
  tree_.file("a/f", "hello");
  const auto page = store_->list_page({}, {});
  ASSERT_EQ(page->objects.size(), 1U);
  EXPECT_EQ(page->objects[0].size, 5U);
  EXPECT_EQ(page->objects[0].etag, store_->head({}, "a/f")->etag);
  EXPECT_EQ(get_all(*store_, "a/f", page->objects[0].etag), "hello");
}

TEST_F(FileListing, LinksNeverLoop) {
  tree_.file("a/b/f");
  tree_.link("..", "a/b/up");
  tree_.link("../..", "a/b/top");
  tree_.link(".", "a/self");
  tree_.link("a/b", "short");
  tree_.link("f", "a/b/g");
  tree_.link("gone", "dangling");
  tree_.folder("only");
  tree_.link(".", "only/self");
  const auto all = list_all(*store_, {});
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
  for (const char* key : {"a/b/f", "a/b/g", "only/", "short/f", "short/g"})
    EXPECT_EQ(std::count(all.begin(), all.end(), key), 1) << key;
  EXPECT_EQ(list_all(*store_, listing("a/b/", "/")), (Names{"a/b/f", "a/b/g"}));
  EXPECT_EQ(list_all(*store_, listing("a/b/up/", "/")), Names{}) << "the way leads back";
  EXPECT_EQ(list_all(*store_, listing("", "/")), (Names{"<a/>", "<only/>", "<short/>"}));
}

TEST_F(FileListing, HidesUnfinishedWritesAndKeysTooLong) {
  tree_.file("d/.thermo-put.0123456789abcdef");
  tree_.file("d/.thermo");
  std::string deep;
  for (int i = 0; i < 5; ++i) deep += std::string(250, 'n') + "/";
  tree_.file(deep + "f");
  EXPECT_EQ(list_all(*store_, listing("d/")), Names{"d/.thermo"});
  EXPECT_EQ(list_all(*store_, {}), Names{"d/.thermo"});
}

TEST_F(FileListing, OddRequests) {
  tree_.file("f");
  EXPECT_EQ(store_->list_page({}, listing("", "-")).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(store_->list_page({}, listing("", "", "", 1000, "f")).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(names(*store_->list_page({}, listing("", "", "", 0))), Names{});
  EXPECT_EQ(list_all(*store_, listing("", "", "f")), Names{});
  EXPECT_EQ(list_all(*store_, listing("", "", "zz")), Names{});
}

// The same keys in a folder and in a flat store: every prefix, delimiter, start and page size must list alike.
TEST_F(FileListing, SeededTreesAgreeWithTheFlatStore) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    Rng rng(seed);
    TempTree tree;
    auto files = *make_file_store(tree.root());
    auto flat = make_memory_store("t");
    std::vector<std::string> keys;
    for (int i = 0; i < 60; ++i) {
      std::string key;
      for (auto depth = rng.below(4); depth > 0; --depth)
        key += std::string(1, "ab-"[rng.below(3)]) + "d/";  // a folder is never a file's name
      key += std::string(1, "ab!-\xc3"[rng.below(5)]) + "ab~"[rng.below(3)];
      tree.file(key);
      put_ok(*flat, key, "x");
      keys.push_back(key);
    }
    for (const std::string prefix : {"", "a", "ad/", "ad/bd", "bd/ad/", "-", "zz"}) {
      for (const std::string delimiter : {"", "/"}) {
        for (const std::uint32_t size : {1U, 3U, 1000U}) {
          for (const auto& after :
               {std::string(), keys[rng.below(keys.size())], std::string("ad/b"), std::string("ad/"), std::string("b")}) {
            const auto request = listing(prefix, delimiter, after, size);
            EXPECT_EQ(list_all(*files, request), list_all(*flat, request))
                << "seed " << seed << " prefix '" << prefix << "' delimiter '" << delimiter << "' after '" << after << "' page "
                << size;
          }
        }
      }
    }
  }
}

TEST_F(FileListing, LargeFoldersAreReadOnceForAllPages) {
  for (int i = 0; i < 3000; ++i) tree_.file("d/" + std::to_string(10000 + i));
  std::size_t pages = 0;
  EXPECT_EQ(list_all(*store_, listing("d/", "", "", 100), &pages).size(), 3000U);
  EXPECT_EQ(pages, 30U);

  file::FolderCache cache;
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // a folder changed in this tick is not kept
  const auto first = cache.read({}, tree_.path("d"));
  ASSERT_TRUE(first);
  EXPECT_EQ((*first)->size(), 3000U);
  EXPECT_EQ(*cache.read({}, tree_.path("d")), *first) << "kept";
  tree_.file("d/new");
  const auto second = cache.read({}, tree_.path("d"));
  EXPECT_NE(*second, *first);
  EXPECT_EQ((*second)->size(), 3001U);
  EXPECT_EQ((*second)->at((*second)->lower_bound("new")).name, "new");
}

TEST_F(FileListing, FilesThatGoWhilePagesAreTurned) {
  for (int i = 0; i < 20; ++i) tree_.file("f" + std::to_string(10 + i));
  auto page = store_->list_page({}, listing("", "", "", 5));
  ASSERT_TRUE(page->truncated);
  for (int i = 3; i < 12; ++i) std::filesystem::remove(tree_.path("f" + std::to_string(10 + i)));
  page = store_->list_page({}, listing("", "", "", 5, page->continuation));
  EXPECT_EQ(names(*page), (Names{"f22", "f23", "f24", "f25", "f26", "+"}));
}

}  // namespace
}  // namespace thermo::store
