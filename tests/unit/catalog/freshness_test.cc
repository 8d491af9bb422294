// When what is known stops to count, what a foreign version changes, and what stays.

#include "support.h"

namespace thermo::catalog::test {
namespace {

using std::chrono::seconds;

struct Notes final : Listener {
  void changed(const std::string& prefix, const std::string& name) override {
    MutexLock lock(mutex);
    seen.push_back(prefix + name);
  }
  Names take() {
    MutexLock lock(mutex);
    return std::exchange(seen, {});
  }
  Mutex mutex{LockRank::kLeaf, "notes"};
  Names seen;
};

TEST_F(CatalogTest, ForeignVersionStartsAGeneration) {
  store_->write("d/f", "one");
  store_->write("d/same", "same");
  Notes notes;
  view_->set_listener(&notes);
  (void)names("d/");
  const auto before = file("d/", "f");
  const auto same = file("d/", "same");
  store_->write("d/f", "two");  // equal size
  EXPECT_EQ(file("d/", "f").etag, before.etag) << "within the TTL";
  clock_.advance(seconds(61));
  const auto now = file("d/", "f");
  EXPECT_EQ(now.number, before.number);
  EXPECT_EQ(now.generation, before.generation + 1);
  EXPECT_NE(now.ino, before.ino);
  EXPECT_NE(now.version, before.version);
  EXPECT_EQ(std::get<File>(view_->by_number({}, before.number).value()).generation, now.generation);
  const auto unchanged = file("d/", "same");
  EXPECT_EQ(unchanged.number, same.number);
  EXPECT_EQ(unchanged.generation, same.generation);
  EXPECT_EQ(unchanged.ino, same.ino);
  EXPECT_EQ(unchanged.version, same.version) << "cached pages stay: they belong to the version";
  EXPECT_EQ(notes.take(), Names{"d/f"});
  view_->set_listener(nullptr);
}

TEST_F(CatalogTest, RemovedFileIsStaleAndComesBackAsAnother) {
  store_->write("d/f", "one");
  store_->write("d/g");
  Notes notes;
  view_->set_listener(&notes);
  (void)names("d/");
  const auto before = file("d/", "f");
  store_->erase("d/f");
  clock_.advance(seconds(61));
  EXPECT_EQ(look("d/", "f"), std::nullopt);
  EXPECT_EQ(view_->by_number({}, before.number).error().code(), ErrorCode::kStale);
  EXPECT_EQ(notes.take(), Names{"d/f"});
  store_->write("d/f", "one");
  EXPECT_EQ(look("d/", "f"), std::nullopt);
  clock_.advance(seconds(61));
  const auto again = file("d/", "f");
  EXPECT_NE(again.number, before.number) << "numbers are not used twice";
  EXPECT_EQ(again.ino, before.ino) << "the same version of the same key";
  view_->set_listener(nullptr);
}

TEST_F(CatalogTest, StrictAsksEachTime) {
  use({.ttl = Nanos::zero()});
  store_->write("d/f", "one");
  store_->write("d/g");
  const auto before = file("d/", "f");
  store_->write("d/f", "two");
  EXPECT_EQ(file("d/", "f").generation, before.generation + 1);
  store_->erase("d/f");
  EXPECT_EQ(look("d/", "f"), std::nullopt);
  EXPECT_EQ(names("d/"), Names{"g"});
  take_lists();
  (void)file("d/", "g");
  EXPECT_EQ(take_lists(), 1) << "one LIST of the small folder";
  store_->write("d/f");
  EXPECT_EQ(names("d/"), (Names{"f", "g"}));
  EXPECT_EQ(take_lists(), 1);
  Told told{Nanos(5), 0};
  ASSERT_TRUE(view_->list({}, "d/", {}, [](const ListedName&) { return true; }, &told));
  EXPECT_EQ(told.valid, Nanos::zero());
  EXPECT_EQ(view_->lookup({}, "d/", "g")->valid, Nanos::zero());
}

TEST_F(CatalogTest, ImmutableNeverAsksAgainUntilToldTo) {
  use({.ttl = Nanos::max()});
  store_->write("d/f", "one");
  (void)names("d/");
  const auto before = file("d/", "f");
  store_->write("d/f", "other");
  take_lists();
  clock_.advance(std::chrono::hours(24 * 400));
  EXPECT_EQ(file("d/", "f").etag, before.etag);
  EXPECT_EQ(view_->lookup({}, "d/", "f")->valid, Nanos::max());
  EXPECT_EQ(take_lists(), 0);
  view_->expire("d/f");
  EXPECT_EQ(file("d/", "f").size, 5u);
  EXPECT_LE(take_lists(), 2);
  EXPECT_EQ(file("d/", "f").size, 5u);
  EXPECT_EQ(take_lists(), 0) << "once";
}

TEST_F(CatalogTest, ExpiredKeyIsAskedForAlsoByListing) {
  for (int i = 0; i < 50; ++i) store_->write("d/f" + std::to_string(i), "old");
  (void)names("d/");
  store_->write("d/f7", "newer");
  view_->expire("d/f7");
  take_lists();
  std::uint64_t size = 0;
  ASSERT_TRUE(view_->list(
      {}, "d/", "f6",
      [&](const ListedName& entry) {
        size = std::get<File>(*entry.entry).size;
        return false;
      },
      nullptr));
  EXPECT_EQ(size, 5u);
  EXPECT_EQ(take_lists(), 1);
  EXPECT_EQ(file("d/", "f7").size, 5u);
  EXPECT_EQ(file("d/", "f8").size, 3u);
  EXPECT_EQ(take_lists(), 0);
}

TEST_F(CatalogTest, ExpiredPrefixIsListedAgainAndItsNeighbourIsNot) {
  store_->write("a/x/f");
  store_->write("b/f");
  (void)names("");
  (void)names("a/x/");
  (void)names("b/");
  store_->write("a/x/new");
  store_->write("b/new");
  view_->expire_prefix("a/");
  EXPECT_EQ(names("a/x/"), (Names{"f", "new"}));
  EXPECT_EQ(names("b/"), Names{"f"});
  EXPECT_EQ(look("b/", "new"), std::nullopt);
}

TEST_F(CatalogTest, RefreshHoldsAcrossARestart) {
  use({.ttl = Nanos::max()});
  store_->write("a/f");
  (void)names("");
  (void)names("a/");
  store_->write("a/new");
  view_->expire_prefix("a/");
  restart();
  EXPECT_EQ(names("a/"), (Names{"f", "new"}));
}

TEST_F(CatalogTest, AgeIsTrueWhenTheClockIsSetBack) {
  store_->write("d/f");
  (void)names("d/");
  store_->write("d/g");
  clock_.step_wall(-std::chrono::hours(1));
  EXPECT_EQ(names("d/"), Names{"f"}) << "known for no time at all";
  clock_.advance(seconds(61));
  EXPECT_EQ(names("d/"), (Names{"f", "g"})) << "a TTL later, though the clock says that it was in the future";
  take_lists();
  EXPECT_EQ(names("d/"), (Names{"f", "g"}));
  EXPECT_EQ(take_lists(), 0) << "and is believed from then on";
}

TEST_F(CatalogTest, ClockSetOnAndBackDoesNotStopTime) {
  store_->write("d/f");
  clock_.step_wall(std::chrono::hours(1));
  (void)names("d/");
  store_->write("d/g");
  clock_.step_wall(-std::chrono::hours(1));
  clock_.advance(seconds(61));
  EXPECT_EQ(names("d/"), (Names{"f", "g"}));
  restart();
  store_->write("d/h");
  clock_.advance(seconds(61));
  EXPECT_EQ(names("d/"), (Names{"f", "g", "h"}));
}

TEST_F(CatalogTest, SleepingMachineGrowsOlder) {
  // Monotonic time stands still while a machine sleeps; wall time shows the next morning.
  store_->write("d/f");
  (void)names("d/");
  store_->write("d/g");
  clock_.step_wall(std::chrono::hours(8));
  EXPECT_EQ(names("d/"), (Names{"f", "g"}));
}

TEST_F(CatalogTest, ValidityRunsDown) {
  store_->write("d/f");
  (void)names("d/");
  clock_.advance(seconds(45));
  const auto left = view_->lookup({}, "d/", "f")->valid;
  EXPECT_LE(left, seconds(15) + Millis(1));
  EXPECT_GT(left, seconds(14));
}

TEST_F(CatalogTest, EmptyFolderIsRefreshedToo) {
  store_->write("d/", "");
  EXPECT_EQ(names("d/"), Names{});
  store_->write("d/new");
  clock_.advance(seconds(61));
  EXPECT_EQ(names("d/"), Names{"new"});
}

TEST_F(CatalogTest, FolderTimesAndNumbersStay) {
  store_->write("d/f");
  const auto before = folder("", "d");
  clock_.advance(seconds(100));
  (void)names("d/");
  (void)names("");
  const auto now = folder("", "d");
  EXPECT_EQ(now.first_seen, before.first_seen);
  EXPECT_EQ(now.number, before.number);
  EXPECT_EQ(now.ino, before.ino);
}

TEST_F(CatalogTest, ViewsOfOneStoreShareWhatTheyLearn) {
  store_->write("d/x/f", "one");
  const auto below = catalog_->view(store_, "d/", {});
  (void)names("d/x/");
  take_lists();
  const auto known = below->lookup({}, "d/x/", "f");
  ASSERT_TRUE(known && known->entry);
  EXPECT_EQ(take_lists(), 0);
  Notes notes;
  below->set_listener(&notes);
  store_->write("d/x/f", "other");
  store_->write("e/f");
  clock_.advance(seconds(61));
  (void)file("d/x/", "f");
  EXPECT_EQ(notes.take(), Names{"d/x/f"});
  below->set_listener(nullptr);
}

TEST_F(CatalogTest, TinyTtlStillAnswers) {
  use({.ttl = Nanos(1)});
  store_->write("d/f");
  EXPECT_EQ(file("d/", "f").key, "d/f");
  EXPECT_EQ(names("d/"), Names{"f"});
}

}  // namespace
}  // namespace thermo::catalog::test
