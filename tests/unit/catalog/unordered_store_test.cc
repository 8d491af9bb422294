// Stores that do not list in the order of keys: nothing is missing, nothing that is gone stays.

#include <map>
#include <set>

#include "base/rng.h"
#include "catalog/page_order.h"
#include "support.h"

namespace thermo::catalog::test {
namespace {

/// Lists as a walk over directories does: "a/x" before "a-b". Its tokens go on in that order; start_after compares as it lists.
class WalkingStore final : public store::ObjectStore {
 public:
  const std::string& id() const override { return id_; }
  Result<store::ObjectInfo> head(const RequestContext&, const std::string& key) override {
    return fail(ErrorCode::kNotFound, key);
  }
  Result<store::GetInfo> get_range(const RequestContext&, const std::string& key, const std::string&, std::uint64_t,
                                   store::ByteRange, BodySink&) override {
    return fail(ErrorCode::kNotFound, key);
  }
  Result<store::PutInfo> put(const RequestContext&, const std::string& key, std::span<const std::byte>,
                             const store::PutOptions&) override {
    return fail(ErrorCode::kNotSupported, key);
  }
  Result<std::vector<store::RemoveFailure>> remove(const RequestContext&, const std::vector<std::string>&) override {
    return std::vector<store::RemoveFailure>{};
  }

  Result<store::ListPage> list_page(const RequestContext&, const store::ListRequest& request) override {
    ++lists;
    MutexLock lock(mutex_);
    store::ListPage page;
    const std::string after = walked(request.continuation.empty() ? request.start_after : request.continuation);
    std::set<std::string> groups;
    for (auto at = keys_.upper_bound(after); at != keys_.end(); ++at) {
      const std::string& key = at->second;
      if (!key.starts_with(request.prefix)) continue;
      const auto slash = request.delimiter.empty() ? std::string::npos : key.find('/', request.prefix.size());
      const std::string name = slash == std::string::npos ? key : key.substr(0, slash + 1);
      if (walked(name) <= after || groups.contains(name)) continue;
      if (page.objects.size() + page.prefixes.size() == std::min(request.max_keys, most_keys)) {
        page.truncated = true;
        return sorted(std::move(page));
      }
      page.continuation = name;
      if (slash == std::string::npos) {
        page.objects.push_back(
            {.key = key, .size = 1, .etag = "\"e\"", .mtime = {}, .storage_class = {}, .content_type = {}, .metadata = {}});
      } else {
        groups.insert(name);
        page.prefixes.push_back(name);
      }
    }
    page.continuation = endless ? "zz" : "";
    page.truncated = endless;
    return sorted(std::move(page));
  }

  void write(const std::string& key) {
    MutexLock lock(mutex_);
    keys_[walked(key)] = key;
  }
  void erase(const std::string& key) {
    MutexLock lock(mutex_);
    keys_.erase(walked(key));
  }

  std::atomic<int> lists{0};
  std::uint32_t most_keys = 1000;
  bool endless = false;

 private:
  /// As the parser of S3's answers does.
  static store::ListPage sorted(store::ListPage page) {
    const auto by_key = [](const auto& a, const auto& b) { return a.key < b.key; };
    page.reordered = !std::is_sorted(page.objects.begin(), page.objects.end(), by_key) ||
                     !std::is_sorted(page.prefixes.begin(), page.prefixes.end());
    std::sort(page.objects.begin(), page.objects.end(), by_key);
    std::sort(page.prefixes.begin(), page.prefixes.end());
    return page;
  }
  static std::string walked(std::string key) {
    std::replace(key.begin(), key.end(), '/', '\1');
    return key;
  }
  const std::string id_ = "walking";
  Mutex mutex_{LockRank::kStore, "walking store"};
  std::map<std::string, std::string> keys_ GUARDED_BY(mutex_);
};

class UnorderedStoreTest : public CatalogTest {
 protected:
  UnorderedStoreTest() { again(); }
  void again() { mount_ = catalog_->view(walking_, {}, freshness_); }
  void settle_walking() {
    const auto& under_way = metrics_.gauge("thermocline_catalog_lists_under_way", "");
    while (under_way.value() != 0) std::this_thread::yield();
  }
  Names listed(const std::string& prefix) {
    auto names = names_in(*mount_, prefix);
    EXPECT_TRUE(names) << names.error().describe();
    return names ? *names : Names{"<error>"};
  }
  bool exists(const std::string& prefix, std::string_view name) {
    const auto found = mount_->lookup({}, prefix, name);
    EXPECT_TRUE(found) << found.error().describe();
    return found && found->entry;
  }

  std::shared_ptr<WalkingStore> walking_ = std::make_shared<WalkingStore>();
  std::shared_ptr<View> mount_;
};

TEST_F(UnorderedStoreTest, AllNamesBesideAFolderAreListed) {
  Names want{"a/"};
  for (int i = 0; i < 3000; ++i) want.push_back("a-" + std::to_string(10'000 + i));
  for (const auto& name : want) walking_->write("d/" + name + (name.ends_with("/") ? "x" : ""));
  std::sort(want.begin(), want.end());
  auto got = listed("d/");
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, want);

  walking_->erase("d/a-10500");
  walking_->erase("d/a/x");
  walking_->write("d/a-1");
  std::erase(want, "a-10500");
  std::erase(want, "a/");
  want.insert(want.begin(), "a-1");
  clock_.advance(std::chrono::seconds(61));
  got = listed("d/");
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, want);
  EXPECT_FALSE(exists("d/", "a"));
  EXPECT_FALSE(exists("d/", "a-10500"));
  EXPECT_TRUE(exists("d/", "a-1"));
}

TEST_F(UnorderedStoreTest, RandomTreesAreListedAndLookedUpRight) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    walking_ = std::make_shared<WalkingStore>();
    walking_->most_keys = 1 + static_cast<std::uint32_t>(rng.below(6));
    catalog_.reset();
    std::filesystem::remove_all(dir_);
    start();
    again();
    std::map<std::string, std::set<std::string>> folders{{"", {}}};
    const Names parts{"a", "a-b", "a.c", "a0", "b", "ab"};
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 12; ++i) {
        std::string key;
        for (auto depth = rng.below(3); depth > 0; --depth) {
          const auto part = parts[rng.below(parts.size())] + "/";
          folders[key].insert(part);
          key += part;
          folders[key];
        }
        const auto leaf = parts[rng.below(parts.size())] + ".f";
        folders[key].insert(leaf);
        walking_->write(key + leaf);
      }
      clock_.advance(std::chrono::seconds(61));
      for (const auto& [folder, names] : folders) {
        if (rng.chance(0.5)) {
          for (const auto& part : parts) {
            EXPECT_EQ(exists(folder, part), names.contains(part + "/")) << seed << " '" << folder << part << "'";
            EXPECT_EQ(exists(folder, part + ".f"), names.contains(part + ".f")) << seed << " '" << folder << part << "'";
          }
        }
        const auto got = listed(folder);
        EXPECT_EQ(std::set<std::string>(got.begin(), got.end()), names) << seed << " '" << folder << "'";
      }
      if (HasFailure()) return;
    }
  }
}

TEST_F(UnorderedStoreTest, WhatWasFoundOutIsKnownAfterARestart) {
  for (const char* key : {"a/x", "a-b", "a.c", "b"}) walking_->write(key);
  EXPECT_EQ(listed("").size(), 4U);
  settle_walking();  // the page of the subtree shows it
  mount_.reset();
  restart();
  again();
  settle_walking();
  walking_->lists = 0;
  clock_.advance(std::chrono::seconds(61));
  EXPECT_EQ(listed("").size(), 4U);
  settle_walking();
  EXPECT_EQ(walking_->lists, 1) << "no page of the subtree is asked for any more";
}

TEST_F(UnorderedStoreTest, AFolderThatIsTooBigIsRefusedWithItsLimit) {
  walking_->write("a/x");
  walking_->write("a-b");
  EXPECT_EQ(listed("").size(), 2U);
  settle_walking();
  for (int i = 0; i < 252'500; ++i) walking_->write("d/f" + std::to_string(i));
  const auto refused = names_in(*mount_, "d/");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kNotSupported);
  EXPECT_NE(refused.error().describe().find("250000"), std::string::npos) << refused.error().describe();
  EXPECT_TRUE(exists("d/", "f252499")) << "a single name can still be asked for";
}

TEST_F(UnorderedStoreTest, AStoreThatNeverEndsIsAnError) {
  walking_->write("a/x");
  walking_->write("a-b");
  EXPECT_EQ(listed(""), (Names{"a-b", "a/"}));
  walking_->endless = true;
  clock_.advance(std::chrono::seconds(61));
  EXPECT_EQ(names_in(*mount_, "").error().code(), ErrorCode::kCorrupt);
}

TEST(PageOrderTest, PagesAreSortedOnceEachAndCut) {
  store::ListPage all;
  for (const char* key : {"p/c", "p/a", "p/b", "p/a"}) {
    all.objects.emplace_back();
    all.objects.back().key = key;
    all.objects.back().size = all.objects.size();
  }
  all.prefixes = {"p/b/", "p/a/", "p/b/"};
  const auto pages = pages_in_order(std::move(all), 2);
  ASSERT_EQ(pages.size(), 3u);
  EXPECT_EQ(pages[0].objects.at(0).key, "p/a");
  EXPECT_EQ(pages[0].objects.at(0).size, 4u) << "the later answer counts";
  EXPECT_EQ(pages[0].prefixes, Names{"p/a/"});
  EXPECT_EQ(pages[1].objects.at(0).key, "p/b");
  EXPECT_EQ(pages[1].prefixes, Names{"p/b/"});
  EXPECT_EQ(pages[2].objects.at(0).key, "p/c");
  EXPECT_TRUE(pages[0].truncated && pages[1].truncated && !pages[2].truncated);
  EXPECT_EQ(pages_in_order({}, 2).size(), 1u);
}

TEST(PageOrderTest, WhereTheTwoOrdersDiffer) {
  const Coverage deep{"p/", true, {}, "p/a/x/y", 1};
  for (const char* key : {"p/a-b", "p/a.c", "p/a-b/c", "p/a/x-", "p/a/x.y/z"}) EXPECT_TRUE(is_in_doubt(deep, key)) << key;
  for (const char* key : {"p/a", "p/a0", "p/A", "p/a/w", "p/a/x", "p/a/x/a", "p-"}) EXPECT_FALSE(is_in_doubt(deep, key)) << key;
  store::ListPage page;
  page.prefixes = {"p/k/", "p/q/"};
  EXPECT_TRUE(ends_in_doubt({"p/", false, {}, "p/q-5", 1}, page));
  EXPECT_FALSE(ends_in_doubt({"p/", false, {}, "p/q/", 1}, page));
  EXPECT_FALSE(ends_in_doubt({"p/", false, {}, "p/p", 1}, page));
  EXPECT_FALSE(ends_in_doubt({"p/", false, {}, {}, 1}, page)) << "it goes on by its token";
}

}  // namespace
}  // namespace thermo::catalog::test
