// Answers that were wrong once, each in the smallest history that shows it.

#include <latch>

#include "catalog/floors.h"
#include "catalog/told_absent.h"
#include "history_model.h"
#include "support.h"

namespace thermo::catalog::test {
namespace {

using std::chrono::seconds;

TEST(Floors, OneForEverythingNeverSinks) {
  Floors floors;
  floors.expire({}, 20);
  floors.expire({}, 10);
  EXPECT_EQ(floors.for_name("a/b"), 20);
  floors.expire("a/b", 30);
  floors.expire({}, 25);
  EXPECT_EQ(floors.for_name("a/b"), 30) << "it took the place of a later one";
}

TEST(Floors, AtTheLimitEverythingIsExpired) {
  Floors floors;
  for (std::size_t i = 0; i <= Floors::kLimit; ++i) floors.expire("k" + std::to_string(i), static_cast<WallNanos>(i + 1));
  EXPECT_EQ(floors.size(), 1u);
  EXPECT_EQ(floors.for_name("other"), static_cast<WallNanos>(Floors::kLimit + 1));
}

TEST(ToldAbsent, RemembersAtLeastTheNewestNames) {
  ToldAbsent told;
  for (std::size_t i = 0; i < 3 * ToldAbsent::kNames; ++i) told.add("d/n" + std::to_string(i));
  for (std::size_t i = 2 * ToldAbsent::kNames; i < 3 * ToldAbsent::kNames; ++i)
    ASSERT_TRUE(told.contains("d/n" + std::to_string(i))) << i;
  int wrong = 0;
  for (int i = 0; i < 10'000; ++i) wrong += told.contains("e/n" + std::to_string(i)) ? 1 : 0;
  EXPECT_LT(wrong, 1000) << "a notice too many now and then";
}

TEST_F(CatalogTest, NumberedFolderDoesNotExist) {
  store_->write("a", "an object");
  (void)names("");
  (void)view_->folder({}, "a/").value();
  (void)view_->folder({}, "ghost/").value();
  EXPECT_EQ(file("", "a").key, "a");
  EXPECT_EQ(look("", "ghost"), std::nullopt);
  EXPECT_EQ(names(""), Names{"a"});
}

TEST_F(CatalogTest, EmptyRootOfOneMountIsNoFolderOfAnother) {
  store_->write("a", "an object");
  store_->write("b");
  const auto below = catalog_->view(store_, "a/", {});
  const auto root = below->folder({}, "a/").value();
  EXPECT_EQ(names_in(*below, "a/").value(), Names{});
  settle();
  EXPECT_EQ(names(""), (Names{"a", "b"}));
  EXPECT_EQ(file("", "a").key, "a");
  store_->write("a/x");
  clock_.advance(seconds(61));
  EXPECT_EQ(names_in(*below, "a/").value(), Names{"x"});
  settle();
  EXPECT_EQ(names(""), (Names{"a/", "b"}));
  store_->erase("a/x");
  clock_.advance(seconds(61));
  EXPECT_EQ(names_in(*below, "a/").value(), Names{});
  settle();
  EXPECT_EQ(names(""), (Names{"a", "b"}));
  EXPECT_EQ(below->folder({}, "a/")->number, root.number) << "the root of a mount keeps its number";
}

TEST_F(CatalogTest, PageThatEndsBetweenObjectAndFolderDoesNotTellOfTheFolder) {
  store_->write("t/x");
  store_->write("t/x/inside");
  store_->write("t/z/deep");
  store_->most_keys = 1000;
  EXPECT_EQ(folder("t/", "x").prefix, "t/x/");
  store_->erase("t/x/inside");
  store_->write("t/x", "changed");
  clock_.advance(seconds(61));
  settle();
  store_->most_keys = 1;  // the first page of the subtree is "t/x" alone
  (void)names("t/");
  EXPECT_EQ(file("t/", "x").size, 7u);
}

TEST_F(CatalogTest, ExpiredObjectBehindAFolderStaysExpired) {
  use({.ttl = Nanos::max()});
  store_->write("d/c", "old");
  store_->write("d/c/inside");
  (void)names("d/");
  store_->write("d/c", "newer");
  view_->expire("d/c");
  EXPECT_EQ(folder("d/", "c").prefix, "d/c/") << "says nothing of the object";
  store_->erase("d/c/inside");
  (void)names("d/c/");
  EXPECT_EQ(names("d/"), Names{"c"});
  EXPECT_EQ(file("d/", "c").size, 5u);
}

TEST_F(CatalogTest, KernelHearsWhenAFolderHidesAListedFile) {
  store_->write("d/a");
  Kernel kernel;
  view_->set_listener(&kernel);
  (void)names("d/");
  restart();  // nothing of it is in memory any more
  view_->set_listener(&kernel);
  (void)names("d/");
  kernel.told("d/a", {State::Kind::kFile, "any"}, kForEver, kernel.notices());
  store_->write("d/a/inside");
  clock_.advance(seconds(61));
  EXPECT_EQ(folder("d/", "a").prefix, "d/a/");
  EXPECT_FALSE(kernel.believes("d/a", 0));
  view_->set_listener(nullptr);
}

TEST_F(CatalogTest, KernelHearsOfANameThatMemoryForgot) {
  store_->write("d/a");
  Kernel kernel;
  view_->set_listener(&kernel);
  (void)names("d/");
  EXPECT_EQ(look("d/", "new"), std::nullopt);
  kernel.told("d/new", {}, kForEver, kernel.notices());
  (void)view_->folder({}, "d/new/").value();  // writes a number: what was known of the name is dropped
  store_->write("d/new");
  clock_.advance(seconds(61));
  EXPECT_EQ(names("d/"), (Names{"a", "new"}));
  EXPECT_FALSE(kernel.believes("d/new", 0));
  view_->set_listener(nullptr);
}

TEST_F(CatalogTest, PartsOfOneListingAreOfOneAge) {
  constexpr int kNames = 3000;
  for (int i = 0; i < kNames; ++i) store_->write("d/f" + std::to_string(10'000 + i));
  use({.ttl = Nanos::zero()});
  Told told;
  std::string after;
  int seen = 0;
  for (bool more = true; more;) {
    int part = 0;
    const auto take = [&](const ListedName& name) {
      after = std::string(name.name);
      return ++part < 256;
    };
    ASSERT_TRUE(view_->list({}, "d/", std::string(after), take, &told));
    seen += part;
    more = part == 256;
  }
  EXPECT_EQ(seen, kNames);
  EXPECT_LE(take_lists(), 10) << "each part was a listing of its own";
  ASSERT_TRUE(view_->list({}, "d/", {}, [](const ListedName&) { return false; }, nullptr));
  EXPECT_GT(take_lists(), 0) << "a new listing asks the store";
}

TEST_F(CatalogTest, AnAnswerOvertakenByAListingChangesNothing) {
  for (const char* name : {"d/a", "d/f", "d/z"}) store_->write(name);
  std::atomic<bool> late{true};
  std::atomic<int> held{0};
  store_->after = [&](const store::ListRequest& request, Result<store::ListPage>&) {
    if (!request.prefix.starts_with("d/f")) return;
    ++held;
    while (late) std::this_thread::sleep_for(Millis(1));
  };
  std::thread asks([&] { (void)view_->lookup({}, "d/", "f"); });
  while (held < 1) std::this_thread::yield();
  store_->erase("d/f");
  clock_.advance(seconds(1));
  const auto listed = names_in(*view_, "d/");
  ASSERT_TRUE(listed);
  EXPECT_EQ(*listed, (Names{"a", "z"}));
  late = false;
  asks.join();
  settle();
  EXPECT_EQ(names("d/"), (Names{"a", "z"})) << "the old answer brought it back";
  EXPECT_EQ(look("d/", "f"), std::nullopt);
}

TEST_F(CatalogTest, StoresThatComeAtOnceAreToldApart) {
  constexpr int kStores = 8;
  for (int round = 0; round < 10; ++round) {
    std::vector<std::shared_ptr<WatchedStore>> stores;
    std::vector<std::shared_ptr<View>> views(kStores);
    for (int i = 0; i < kStores; ++i) {
      stores.push_back(std::make_shared<WatchedStore>(clock_, "round" + std::to_string(round) + "-" + std::to_string(i)));
      stores.back()->write("mine" + std::to_string(i));
    }
    std::latch go(kStores);
    std::vector<std::thread> threads;
    for (int i = 0; i < kStores; ++i) {
      threads.emplace_back([&, i] {
        const auto at = static_cast<std::size_t>(i);
        go.arrive_and_wait();
        views[at] = catalog_->view(stores[at], {}, {});
        (void)names_in(*views[at], {});
      });
    }
    for (auto& thread : threads) thread.join();
    for (int i = 0; i < kStores; ++i) {
      const auto listed = names_in(*views[static_cast<std::size_t>(i)], {});
      ASSERT_TRUE(listed);
      EXPECT_EQ(*listed, Names{"mine" + std::to_string(i)});
    }
  }
}

TEST_F(CatalogTest, APageOfAnEarlierWalkIsNotTakenForOneOfALaterWalk) {
  for (int i = 0; i < 30; ++i) store_->write("w/d" + std::to_string(100 + i) + "/f");
  store_->most_keys = 10;
  EXPECT_EQ(names("w/").size(), 30u);
  EXPECT_EQ(names("w/d100/").size(), 1u);
  // The walk's next page is on its way when the TTL ends and somebody else begins a new walk.
  std::atomic<bool> late{false};
  std::atomic<int> held{0};
  store_->after = [&](const store::ListRequest& request, Result<store::ListPage>&) {
    if (request.prefix != "w/" || !request.delimiter.empty() || request.continuation.empty() || held > 0) return;
    ++held;
    late = true;
    while (late) std::this_thread::sleep_for(Millis(1));
  };
  std::thread walks([&] {
    for (int i = 0; i < 30; ++i) (void)names_in(*view_, "w/d" + std::to_string(100 + i) + "/");
  });
  for (int i = 0; i < 1000 && held == 0; ++i) std::this_thread::sleep_for(Millis(1));
  clock_.advance(seconds(61));
  const auto other = catalog_->view(store_, root_, freshness_);
  ASSERT_TRUE(names_in(*other, "w/"));
  late = false;
  walks.join();
  settle();
  store_->after = nullptr;
  for (int i = 0; i < 30; ++i) {
    const auto found = other->lookup({}, "w/", "d" + std::to_string(100 + i));
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->entry) << i;
    EXPECT_EQ(names_in(*other, "w/d" + std::to_string(100 + i) + "/").value_or(Names{}), Names{"f"}) << i;
  }
}

}  // namespace
}  // namespace thermo::catalog::test
