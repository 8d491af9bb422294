// How many LISTs lookups cost, and what they answer.

#include <latch>

#include "support.h"

namespace thermo::catalog::test {
namespace {

TEST_F(CatalogTest, UnlistedFileIsFoundInOneRound) {
  store_->write("d/q", "body");
  for (int i = 0; i < 2000; ++i) store_->write("d/z" + std::to_string(i));
  const auto found = file("d/", "q");
  EXPECT_EQ(found.key, "d/q");
  EXPECT_EQ(found.size, 4u);
  EXPECT_GE(found.number, kFirstNumber);
  EXPECT_EQ(found.version, store::version_id(store_->id(), "d/q", found.etag, 4));
  EXPECT_LE(take_lists(), 3);
  EXPECT_EQ(file("d/", "q").number, found.number);
  EXPECT_EQ(take_lists(), 0) << "a known name costs nothing";
  EXPECT_EQ(store_->heads, 0);
}

TEST_F(CatalogTest, SmallSubtreeCostsOneRoundInAll) {
  for (int top = 0; top < 5; ++top) {
    for (int i = 0; i < 300; ++i) store_->write(std::to_string(top) + "/b/c/f" + std::to_string(i));
  }
  store_->delay = Millis(30);
  const Nanos limit = Millis(59) * kPatience;
  EXPECT_LT(shortest(limit,
                     [&](int attempt) {
                       const auto top = std::to_string(attempt);
                       (void)folder("", top);
                       (void)folder(top + "/", "b");
                       (void)folder(top + "/b/", "c");
                       EXPECT_EQ(file(top + "/b/c/", "f17").key, top + "/b/c/f17");
                       EXPECT_EQ(look(top + "/b/c/", "absent"), std::nullopt);
                       EXPECT_LE(take_lists(), 3);
                       view_->expire_prefix("");
                     }),
            limit);
}

TEST_F(CatalogTest, LargeSubtreeCostsOneRoundPerComponent) {
  for (int i = 0; i < 1500; ++i) store_->write("a/b/c/f" + std::to_string(10'000 + i));
  store_->delay = Millis(20);
  const Nanos limit = Millis(20 * 5 + 15) * kPatience;
  EXPECT_LT(shortest(limit,
                     [&](int) {
                       view_->expire_prefix("");
                       (void)folder("", "a");
                       (void)folder("a/", "b");
                       (void)folder("a/b/", "c");
                       (void)file("a/b/c/", "f11499");
                     }),
            limit);
}

TEST_F(CatalogTest, KeysBetweenObjectAndFolderDoNotHideEither) {
  // All of these sort between "d/q" and "d/q/".
  for (int i = 0; i < 50; ++i) store_->write("d/q-" + std::to_string(i));
  store_->write("d/q/inside");
  EXPECT_EQ(folder("d/", "q").prefix, "d/q/");
  store_->write("e/q");
  for (int i = 0; i < 50; ++i) store_->write("e/q-" + std::to_string(i));
  EXPECT_EQ(file("e/", "q").key, "e/q");
  EXPECT_EQ(look("e/", "q-"), std::nullopt);
}

TEST_F(CatalogTest, SecondNameListsTheFolderOnce) {
  for (int i = 0; i < 500; ++i) store_->write("d/f" + std::to_string(i));
  (void)file("d/", "f1");
  take_lists();
  for (int i = 0; i < 500; ++i) (void)file("d/", "f" + std::to_string(i));
  EXPECT_EQ(look("d/", "absent"), std::nullopt);
  EXPECT_EQ(look("d/", "f"), std::nullopt);
  EXPECT_EQ(take_lists(), 1);
}

TEST_F(CatalogTest, NegativeAnswerIsKeptAndExpires) {
  EXPECT_EQ(look("d/", "q"), std::nullopt);
  take_lists();
  EXPECT_EQ(look("d/", "q"), std::nullopt);
  EXPECT_EQ(take_lists(), 0);
  store_->write("d/q");
  clock_.advance(std::chrono::seconds(61));
  EXPECT_EQ(file("d/", "q").key, "d/q");
}

TEST_F(CatalogTest, BigFolderIsAskedByName) {
  for (int i = 0; i < 25'000; ++i) store_->write("d/f" + std::to_string(100'000 + i));
  (void)file("d/", "f100000");
  (void)file("d/", "f124999");  // starts a listing, which finds the folder too big for lookups
  for (int i = 0; i < 100 && store_->in_flight > 0; ++i) std::this_thread::sleep_for(Millis(10));
  std::this_thread::sleep_for(Millis(300));
  take_lists();
  clock_.advance(std::chrono::seconds(61));
  for (int i = 0; i < 10; ++i) (void)file("d/", "f" + std::to_string(110'000 + 7 * i));
  EXPECT_LE(take_lists(), 30);
  for (const auto& request : store_->log()) EXPECT_LE(request.max_keys, 1000u);
}

TEST_F(CatalogTest, LookingAtAllOfABigFolderCostsListingsNotOneRequestPerName) {
  constexpr int kNames = 30'000;  // more pages than are read for the sake of the first lookups
  for (int i = 0; i < kNames; ++i) store_->write("d/f" + std::to_string(100'000 + i));
  ASSERT_EQ(names("d/").size(), static_cast<std::size_t>(kNames));
  take_lists();
  clock_.advance(std::chrono::seconds(61));
  for (int i = 0; i < kNames; i += 10) (void)file("d/", "f" + std::to_string(100'000 + i));
  EXPECT_LE(take_lists(), 150) << "of 30 pages: as many single questions, then the listing";
}

TEST_F(CatalogTest, ABigFolderThatWasNeverListedIsReadInGrowingSteps) {
  constexpr int kNames = 50'000;
  for (int i = 0; i < kNames; ++i) store_->write("d/f" + std::to_string(100'000 + i));
  for (int i = 0; i < kNames; i += 50) (void)file("d/", "f" + std::to_string(100'000 + i));
  EXPECT_LE(take_lists(), 400) << "1000 names of 50 pages";
}

TEST_F(CatalogTest, ManyReadersShareOneQuestion) {
  for (int i = 0; i < 100; ++i) store_->write("d/f" + std::to_string(i));
  store_->delay = Millis(30);
  std::latch go(16);
  std::vector<std::thread> readers;
  for (int i = 0; i < 16; ++i) {
    readers.emplace_back([&] {
      go.arrive_and_wait();
      EXPECT_TRUE(look("d/", "f7"));
    });
  }
  for (auto& reader : readers) reader.join();
  EXPECT_LE(take_lists(), 3);
}

TEST_F(CatalogTest, ReadersOfManyNamesShareTheFolder) {
  for (int i = 0; i < 400; ++i) store_->write("d/f" + std::to_string(i));
  store_->delay = Millis(10);
  std::atomic<int> next{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 8; ++i) {
    readers.emplace_back([&] {
      for (int n = next++; n < 400; n = next++) EXPECT_TRUE(look("d/", "f" + std::to_string(n)));
    });
  }
  for (auto& reader : readers) reader.join();
  EXPECT_LE(take_lists(), 8);
}

TEST_F(CatalogTest, WithoutWaitingItSaysWhatItWouldNeed) {
  store_->write("d/q");
  const auto now = RequestContext{}.waiting(false);
  EXPECT_EQ(view_->lookup(now, "d/", "q").error().code(), ErrorCode::kWouldWaitStore);
  const auto visit = [](const ListedName&) { return true; };
  EXPECT_EQ(view_->list(now, "d/", {}, visit, nullptr).error().code(), ErrorCode::kWouldWaitStore);
  EXPECT_EQ(take_lists(), 0);
  const auto known = file("d/", "q");
  EXPECT_EQ(names("d/"), Names{"q"});
  EXPECT_TRUE(view_->lookup(now, "d/", "q")->entry);
  EXPECT_TRUE(view_->list(now, "d/", {}, visit, nullptr));
  EXPECT_TRUE(view_->by_number(now, known.number));
}

TEST_F(CatalogTest, NumbersLeadBack) {
  store_->write("d/q");
  const auto known = file("d/", "q");
  const auto parent = view_->folder({}, "d/").value();
  EXPECT_EQ(std::get<File>(view_->by_number({}, known.number).value()).key, "d/q");
  EXPECT_EQ(std::get<Folder>(view_->by_number({}, parent.number).value()).prefix, "d/");
  EXPECT_EQ(view_->by_number({}, known.number + 1'000'000).error().code(), ErrorCode::kStale);
  const auto below = catalog_->view(store_, "other/", {});
  EXPECT_EQ(below->by_number({}, known.number).error().code(), ErrorCode::kStale) << "not below that mount";
}

TEST_F(CatalogTest, HotLookupsStayInMemory) {
  for (int i = 0; i < 1000; ++i) store_->write("a/b/f" + std::to_string(i));
  (void)names("a/b/");
  (void)file("a/b/", "f5");
  constexpr int kTimes = 200'000;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kTimes; ++i) ASSERT_TRUE(view_->lookup({}, "a/b/", "f5"));
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
  RecordProperty("us_per_lookup", std::to_string(spent.count() / kTimes));
  std::printf("%.2f us per hot lookup\n", spent.count() / kTimes);
  EXPECT_LT(spent.count() / kTimes, 50) << "generous: sanitizers and busy machines";
}

}  // namespace
}  // namespace thermo::catalog::test
