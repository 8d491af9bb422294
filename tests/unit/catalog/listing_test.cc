// Listings: order, requests, walks, parallel listing of big folders.

#include <set>

#include "base/rng.h"
#include "support.h"

namespace thermo::catalog::test {
namespace {

/// Lists like `find`: a folder, then each of its folders in turn.
std::size_t walk(View& view, const std::string& prefix, Nanos per_folder = Nanos::zero()) {
  auto listed = names_in(view, prefix);
  EXPECT_TRUE(listed) << prefix << ": " << listed.error().describe();
  if (!listed) return 0;
  if (per_folder > Nanos::zero()) std::this_thread::sleep_for(per_folder);
  std::size_t entries = listed->size();
  for (const auto& name : *listed) {
    if (name.back() == '/') entries += walk(view, prefix + name, per_folder);
  }
  return entries;
}

void put_tree(WatchedStore& store, const std::string& root, int folders, int files) {
  for (int folder = 0; folder < folders; ++folder) {
    for (int file = 0; file < files; ++file) {
      char name[64];
      std::snprintf(name, sizeof name, "d%03d/f%04d", folder, file);
      store.write(root + name);
    }
  }
}

TEST_F(CatalogTest, KeyOrderWithFilesAmongFolders) {
  for (const char* key : {"p/a-b", "p/a/x", "p/a/y", "p/a.txt", "p/b", "p/c/d/e", "q/z"}) store_->write(key);
  EXPECT_EQ(names("p/"), (Names{"a-b", "a.txt", "a/", "b", "c/"}));
  EXPECT_EQ(names(""), (Names{"p/", "q/"}));
  EXPECT_EQ(names("p/", "a.txt"), (Names{"a/", "b", "c/"}));
  EXPECT_EQ(names("p/", "a"), (Names{"b", "c/"})) << "a folder stands where 'a/' sorts";
  EXPECT_EQ(names("p/", "c"), Names{});
  EXPECT_EQ(names("p/", "a-a"), (Names{"a-b", "a.txt", "a/", "b", "c/"}));
}

TEST_F(CatalogTest, StoppedListingGoesOnAfterTheLastName) {
  for (int i = 0; i < 30; ++i)
    store_->write("p/" + std::string(i % 3 == 0 ? "d" : "f") + std::to_string(i) + (i % 3 == 0 ? "/x" : ""));
  const auto all = names("p/");
  EXPECT_EQ(all.size(), 30u);
  Names pieces;
  std::string after;
  while (true) {
    const auto some = names_in(*view_, "p/", after, 7).value();
    if (some.empty()) break;
    pieces.insert(pieces.end(), some.begin(), some.end());
    after = some.back();
    if (after.back() == '/') after.pop_back();
  }
  EXPECT_EQ(pieces, all);
}

TEST_F(CatalogTest, MissingFolderIsNotFoundAndTheRootIsNot) {
  EXPECT_EQ(names_in(*view_, "none/").error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(names(""), Names{});
  use({}, "deep/root/");
  EXPECT_EQ(names("deep/root/"), Names{});
  store_->write("deep/root/f");
  clock_.advance(std::chrono::seconds(61));
  EXPECT_EQ(names("deep/root/"), Names{"f"});
}

TEST_F(CatalogTest, AttributesComeFromTheListing) {
  store_->write("p/f", "12345");
  ASSERT_TRUE(view_->list(
      {}, "p/", {},
      [&](const ListedName& entry) {
        const auto& listed = std::get<File>(*entry.entry);
        EXPECT_EQ(listed.size, 5u);
        EXPECT_FALSE(listed.etag.empty());
        EXPECT_NE(listed.ino, 0u);
        return true;
      },
      nullptr));
  take_lists();
  (void)file("p/", "f");
  EXPECT_EQ(look("p/", "g"), std::nullopt);
  EXPECT_EQ(take_lists(), 0) << "one LIST serves all names of its folder";
  EXPECT_EQ(store_->heads, 0);
}

TEST_F(CatalogTest, WalkOf4220EntriesTakesEightListsAtMost) {
  put_tree(*store_, "tree/", 200, 20);
  for (int i = 0; i < 20; ++i) store_->write("tree/top" + std::to_string(i));
  store_->delay = Millis(5);
  EXPECT_EQ(walk(*view_, "tree/", std::chrono::microseconds(200)), 4220u);
  EXPECT_LE(take_lists(), 8);
  EXPECT_EQ(walk(*view_, "tree/"), 4220u);
  EXPECT_EQ(take_lists(), 0);
  // Everything is known now: lookups too.
  EXPECT_EQ(file("tree/d117/", "f0003").key, "tree/d117/f0003");
  EXPECT_EQ(look("tree/d117/", "g"), std::nullopt);
  EXPECT_EQ(take_lists(), 0);
  clock_.advance(std::chrono::seconds(61));
  EXPECT_EQ(walk(*view_, "tree/"), 4220u);
  EXPECT_LE(take_lists(), 8) << "after expiry the same again";
}

TEST_F(CatalogTest, WalkOfNestedAndUnevenFolders) {
  std::size_t entries = 0;
  Rng rng(3);
  std::set<std::string> folders;
  for (int i = 0; i < 6000; ++i) {
    const auto year = "y" + std::to_string(rng.below(4));
    const auto day = year + "/d" + std::to_string(rng.below(30));
    store_->write("t/" + day + "/f" + std::to_string(i));
    folders.insert(year);
    folders.insert(day);
    ++entries;
  }
  EXPECT_EQ(walk(*view_, "t/"), entries + folders.size());
  EXPECT_LE(take_lists(), 14) << "7 pages, the root's own, and a few where a page ends inside of a folder";
}

TEST_F(CatalogTest, RandomFoldersFallBackToTheirOwnListing) {
  put_tree(*store_, "tree/", 100, 30);
  (void)names("tree/");
  take_lists();
  Rng rng(11);
  std::set<std::string> asked;
  for (int i = 0; i < 30; ++i) {
    char name[32];
    std::snprintf(name, sizeof name, "tree/d%03d/", static_cast<int>(99 - rng.below(60)));
    EXPECT_EQ(names(name).size(), 30u);
    asked.insert(name);
  }
  EXPECT_LE(take_lists(), static_cast<int>(asked.size()) + 4);
}

TEST_F(CatalogTest, LeafFolderIsRefreshedByOneList) {
  for (int i = 0; i < 100; ++i) store_->write("d/f" + std::to_string(i));
  EXPECT_EQ(names("d/").size(), 100u);
  clock_.advance(std::chrono::seconds(61));
  take_lists();
  EXPECT_EQ(names("d/").size(), 100u);
  EXPECT_EQ(take_lists(), 1);
  clock_.advance(std::chrono::seconds(61));
  for (int i = 0; i < 100; ++i) (void)file("d/", "f" + std::to_string(i));
  EXPECT_EQ(take_lists(), 1);
}

TEST_F(CatalogTest, TwentyThousandNamesInParallel) {
  std::set<std::string> want;
  for (int i = 0; i < 20'000; ++i) {
    char name[32];
    std::snprintf(name, sizeof name, "f%06d.parquet", i);
    want.insert(name);
    store_->write("wide/" + std::string(name));
  }
  store_->delay = Millis(25);
  store_->page_delay = Millis(14);
  const auto start = std::chrono::steady_clock::now();
  const auto got = names("wide/");
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(got, Names(want.begin(), want.end()));
  std::printf("20,000 names: %.0f ms, %d LISTs\n", spent.count(), store_->lists.load());
  EXPECT_LE(take_lists(), 31);
  EXPECT_GT(store_->most_in_flight, 3);
  EXPECT_LT(spent.count(), 3000) << "generous: sanitizers and busy machines; 500 on a quiet one";
  const auto again = std::chrono::steady_clock::now();
  EXPECT_EQ(names("wide/").size(), 20'000u);
  const std::chrono::duration<double> second = std::chrono::steady_clock::now() - again;
  std::printf("again: %.0f names/s\n", 20'000 / second.count());
  EXPECT_EQ(take_lists(), 0);
}

TEST_F(CatalogTest, BigFolderOfFoldersAndFiles) {
  std::set<std::string> want;
  Rng rng(5);
  while (want.size() < 3500) {
    auto name = rng.hex(8);
    if (rng.chance(0.3)) {
      store_->write("mix/" + name + "/a");
      store_->write("mix/" + name + "/b");
      name += "/";
    } else {
      store_->write("mix/" + name);
    }
    want.insert(name);
  }
  EXPECT_EQ(names("mix/"), Names(want.begin(), want.end()));
  EXPECT_LE(take_lists(), 12);
}

TEST_F(CatalogTest, ConcurrentListingsShareOneFlight) {
  for (int i = 0; i < 2500; ++i) store_->write("d/f" + std::to_string(10'000 + i));
  store_->delay = Millis(10);
  std::vector<std::thread> readers;
  for (int i = 0; i < 8; ++i) readers.emplace_back([&] { EXPECT_EQ(names("d/").size(), 2500u); });
  for (auto& reader : readers) reader.join();
  EXPECT_LE(take_lists(), 9);
}

}  // namespace
}  // namespace thermo::catalog::test
