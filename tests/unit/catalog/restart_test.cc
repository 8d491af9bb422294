// What a restart keeps, and a database that is damaged or gone.

#include <fstream>

#include "support.h"

namespace thermo::catalog::test {
namespace {

TEST_F(CatalogTest, NumbersInodesAndFreshnessStay) {
  for (int i = 0; i < 100; ++i) store_->write("d/s/f" + std::to_string(i), std::to_string(i));
  (void)names("d/");
  (void)names("d/s/");
  store_->write("d/s/f5", "changed");
  view_->expire("d/s/f5");
  const auto changed = file("d/s/", "f5");
  const auto plain = file("d/s/", "f6");
  const auto parent = folder("d/", "s");
  EXPECT_EQ(changed.generation, 2u);
  take_lists();
  restart();
  const auto changed_now = file("d/s/", "f5");
  EXPECT_EQ(changed_now.number, changed.number);
  EXPECT_EQ(changed_now.generation, 2u);
  EXPECT_EQ(changed_now.ino, changed.ino);
  EXPECT_EQ(changed_now.version, changed.version);
  EXPECT_EQ(file("d/s/", "f6").ino, plain.ino);
  EXPECT_EQ(folder("d/", "s").number, parent.number);
  EXPECT_EQ(folder("d/", "s").first_seen, parent.first_seen);
  EXPECT_EQ(look("d/s/", "absent"), std::nullopt);
  EXPECT_EQ(names("d/s/").size(), 100u);
  EXPECT_EQ(std::get<File>(view_->by_number({}, plain.number).value()).key, "d/s/f6");
  EXPECT_EQ(take_lists(), 0) << "known and fresh across the restart";
  EXPECT_EQ(catalog_->stats().files, 100u);
  store_->write("d/s/new");
  clock_.advance(std::chrono::seconds(61));
  const auto fresh = file("d/s/", "new");
  EXPECT_GT(fresh.number, plain.number);
  EXPECT_NE(fresh.number, parent.number);
}

TEST_F(CatalogTest, ExpiryRunsOnWhileStopped) {
  store_->write("d/f");
  (void)names("d/");
  store_->write("d/g");
  stop();
  clock_.advance(std::chrono::seconds(61));
  start();
  EXPECT_EQ(names("d/"), (Names{"f", "g"}));
}

TEST_F(CatalogTest, ExpiredAtTheMomentOfARestart) {
  // The clock stands still: what is stamped after the restart has to be later than what was stamped before.
  store_->write("d/f", "old");
  for (int i = 0; i < 20; ++i) (void)file("d/", "f");
  (void)names("d/");
  store_->write("d/f", "newer");
  restart();
  view_->expire("d/f");
  EXPECT_EQ(file("d/", "f").size, 5u);
}

TEST_F(CatalogTest, ClockSetBackWhileStopped) {
  use({.ttl = std::chrono::hours(24)});
  store_->write("d/f");
  (void)names("d/");
  store_->write("d/g");
  stop();
  clock_.step_wall(-std::chrono::minutes(10));
  start();
  EXPECT_EQ(names("d/"), (Names{"f", "g"})) << "nobody knows how old it is";
  (void)names("");
  take_lists();
  EXPECT_EQ(look("d/", "f").has_value(), true);
  EXPECT_EQ(look("d/", "none"), std::nullopt);
  EXPECT_EQ(take_lists(), 0);
  restart();
  EXPECT_EQ(names("d/"), (Names{"f", "g"}));
  EXPECT_EQ(take_lists(), 0) << "and is kept again from then on";
}

TEST_F(CatalogTest, TimeThatPassedWhileStoppedCountsThoughTheClockIsSetBackNext) {
  store_->write("d/f");
  (void)names("d/");
  store_->write("d/g");
  stop();
  clock_.advance(std::chrono::seconds(61));
  start();
  clock_.step_wall(-std::chrono::minutes(10));
  EXPECT_EQ(names("d/"), (Names{"f", "g"}));
}

TEST_F(CatalogTest, OldNamesStayUntrustedAcrossASecondRestart) {
  store_->write("d/f");
  (void)names("d/");
  store_->write("d/g");
  stop();
  clock_.step_wall(-std::chrono::minutes(10));
  start();
  restart();
  EXPECT_EQ(names("d/"), (Names{"f", "g"}));
}

TEST_F(CatalogTest, TwoStoresDoNotMix) {
  auto other = std::make_shared<WatchedStore>(clock_, "other");
  store_->write("d/f", "here");
  other->write("d/g", "there");
  const auto second = catalog_->view(other, "", {});
  EXPECT_EQ(names("d/"), Names{"f"});
  EXPECT_EQ(names_in(*second, "d/").value(), Names{"g"});
  const auto number = file("d/", "f").number;
  EXPECT_EQ(second->by_number({}, number).error().code(), ErrorCode::kStale);
  restart();
  const auto again = catalog_->view(other, "", {});
  EXPECT_EQ(names_in(*again, "d/").value(), Names{"g"});
  EXPECT_EQ(names("d/"), Names{"f"});
}

TEST_F(CatalogTest, DamagedDatabaseIsSetAsideAndNumbersGoOnHigher) {
  store_->write("d/f");
  const auto before = file("d/", "f");
  stop();
  for (const auto& entry : std::filesystem::directory_iterator(dir_ / "catalog")) {
    if (entry.path().filename().string().starts_with("MANIFEST")) std::ofstream(entry.path(), std::ios::trunc) << "garbage";
  }
  start();
  EXPECT_TRUE(std::filesystem::exists(dir_ / "catalog.damaged"));
  EXPECT_EQ(view_->by_number({}, before.number).error().code(), ErrorCode::kStale);
  const auto now = file("d/", "f");
  EXPECT_GT(now.number, before.number);
  EXPECT_LT(now.number, Number{1} << 44);
  EXPECT_EQ(now.ino, before.ino) << "the same version";
  EXPECT_EQ(view_->by_number({}, before.number).error().code(), ErrorCode::kStale);
}

TEST_F(CatalogTest, DeletedDatabaseBeginsInAnotherRange) {
  store_->write("d/f");
  const auto before = file("d/", "f");
  stop();
  std::filesystem::remove_all(dir_ / "catalog");
  start();
  EXPECT_NE(file("d/", "f").number, before.number);
  EXPECT_EQ(view_->by_number({}, before.number).error().code(), ErrorCode::kStale);
}

TEST_F(CatalogTest, SecondOpenerIsRefused) {
  Options options;
  options.path = dir_ / "catalog";
  options.metrics = &metrics_;
  const auto second = open_catalog(options);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::kBusy) << second.error().describe();
  EXPECT_FALSE(std::filesystem::exists(dir_ / "catalog.damaged"));
}

TEST_F(CatalogTest, SpeedAfterARestart) {
  std::vector<std::string> prefixes;
  for (int folder = 0; folder < 50; ++folder) {
    prefixes.push_back("t/d" + std::to_string(folder) + "/");
    for (int i = 0; i < 400; ++i) store_->write(prefixes.back() + "f" + std::to_string(i));
    (void)names(prefixes.back());
  }
  (void)names("t/");
  take_lists();
  restart();
  auto start = std::chrono::steady_clock::now();
  for (const auto& prefix : prefixes) {
    for (int i = 0; i < 400; ++i) ASSERT_TRUE(view_->lookup({}, prefix, "f" + std::to_string(i))->entry);
  }
  const std::chrono::duration<double> looked = std::chrono::steady_clock::now() - start;
  restart();
  start = std::chrono::steady_clock::now();
  std::size_t entries = 0;
  for (const auto& prefix : prefixes) entries += names(prefix).size();
  const std::chrono::duration<double> listed = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(entries, 20'000u);
  EXPECT_EQ(take_lists(), 0);
  std::printf("after a restart: %.0f lookups/s, %.0f entries/s\n", 20'000 / looked.count(), 20'000 / listed.count());
  EXPECT_GT(20'000 / looked.count(), 3'000) << "generous: sanitizers and busy machines; 30,000 on a quiet one";
  EXPECT_GT(20'000 / listed.count(), 20'000);
}

}  // namespace
}  // namespace thermo::catalog::test
