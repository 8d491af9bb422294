#include "catalog/split_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>

#include "base/rng.h"
#include "catalog/walk_cursor.h"

namespace thermo::catalog {
namespace {

struct Outcome {
  std::vector<std::string> seen;  // in the order of coverage
  std::size_t requests = 0;
  std::size_t full_pages = 0;
  std::size_t rounds = 0;
};

/// Plays the store: answers stretches of `names` (under "p/") in rounds of `parallel`, each round in random order.
Outcome play(const std::set<std::string>& names, std::size_t page, std::uint64_t seed) {
  Rng rng(seed);
  SplitPlan plan("p/", {.parallel = 16, .page = page});
  std::deque<Stretch> queue{plan.start()};
  Outcome outcome;
  std::multiset<std::string> all;
  while (!queue.empty()) {
    ++outcome.rounds;
    std::vector<Stretch> round;
    while (!queue.empty() && round.size() < 16) {
      round.push_back(queue.front());
      queue.pop_front();
    }
    while (!round.empty()) {
      const auto pick = rng.below(round.size());
      const Stretch stretch = round[pick];
      round.erase(round.begin() + static_cast<std::ptrdiff_t>(pick));
      auto it = names.upper_bound(stretch.token.empty() ? stretch.after : stretch.token);
      std::vector<std::string_view> entries;
      for (; it != names.end() && entries.size() < page; ++it) entries.emplace_back(*it);
      const auto step = plan.on_page(stretch.id, entries, it != names.end(), entries.empty() ? "" : std::string(entries.back()));
      for (const auto entry : entries) {
        if (entry > step.after && (step.until.empty() || entry <= step.until)) all.emplace(entry);
      }
      queue.insert(queue.end(), step.next.begin(), step.next.end());
    }
    if (outcome.rounds > 10'000) break;
  }
  EXPECT_TRUE(plan.done());
  outcome.seen.assign(all.begin(), all.end());
  outcome.requests = plan.requests();
  outcome.full_pages = (names.size() + page - 1) / page;
  return outcome;
}

TEST(SplitPlan, SmallFolderIsOneRequest) {
  const auto outcome = play({"p/a", "p/b/", "p/c"}, 1000, 1);
  EXPECT_EQ(outcome.requests, 1u);
  EXPECT_EQ(outcome.seen.size(), 3u);
  EXPECT_EQ(play({}, 1000, 1).requests, 1u);
}

TEST(SplitPlan, CountersAreReadInFewRoundsWithoutWaste) {
  std::set<std::string> names;
  for (int i = 0; i < 20'000; ++i) {
    char name[32];
    std::snprintf(name, sizeof name, "p/f%06d", i);
    names.insert(name);
  }
  const auto outcome = play(names, 1000, 1);
  EXPECT_EQ(outcome.seen.size(), 20'000u);
  EXPECT_LE(outcome.requests, 30u);
  EXPECT_LE(outcome.rounds, 8u);
}

TEST(SplitPlan, HashesAreReadInFewRoundsWithoutWaste) {
  Rng rng(5);
  std::set<std::string> names;
  while (names.size() < 20'000) names.insert("p/" + rng.hex(16) + ".parquet");
  const auto outcome = play(names, 1000, 2);
  EXPECT_EQ(outcome.seen.size(), names.size());
  EXPECT_LE(outcome.requests, 30u);
  EXPECT_LE(outcome.rounds, 9u);
}

TEST(SplitPlan, PartFilesWithAnOddOneOut) {
  Rng rng(5);
  std::set<std::string> names{"p/_SUCCESS"};
  for (int i = 0; i < 20'000; ++i) {
    char name[64];
    std::snprintf(name, sizeof name, "p/part-%05d-%s.snappy.parquet", i, rng.hex(8).c_str());
    names.insert(name);
  }
  const auto outcome = play(names, 1000, 2);
  EXPECT_EQ(outcome.seen.size(), names.size());
  EXPECT_LE(outcome.requests, 30u);
}

TEST(SplitPlan, EveryNameExactlyOnceForAnyNames) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    std::set<std::string> names;
    const auto count = 1 + rng.below(900);
    const auto kind = rng.below(7);
    for (std::uint64_t i = 0; i < count; ++i) {
      std::string name;
      switch (kind) {
        case 0: name = std::to_string(rng.below(5000)); break;
        case 1: name = rng.hex(6); break;
        case 2:
          for (auto n = 1 + rng.below(6); n > 0; --n)
            name.push_back("ab/-09.\xc3\xff"[rng.below(2) == 0 ? rng.below(2) : 3 + rng.below(6)]);
          break;
        case 3:
          name = "2024-" + std::to_string(10 + rng.below(3)) + "-" + std::to_string(10 + rng.below(20)) + "_" +
                 std::to_string(rng.below(99));
          break;
        case 4: name = std::string(rng.below(40), 'x') + "y"; break;
        case 5: name = rng.chance(0.95) ? "same-prefix-" + std::to_string(i) : rng.hex(3); break;
        default:
          for (auto n = 1 + rng.below(5); n > 0; --n) {
            auto c = static_cast<char>(rng.below(256));
            name.push_back(c == '/' ? 'x' : c);
          }
      }
      if (name.empty()) name = "e";
      if (rng.chance(0.3)) name += "/";
      names.insert("p/" + name);
    }
    const auto page = 3 + rng.below(40);
    const auto outcome = play(names, page, seed);
    ASSERT_EQ(outcome.seen, std::vector<std::string>(names.begin(), names.end())) << "seed " << seed;
    // Adversarial names cost more, yet never without bound.
    EXPECT_LE(outcome.requests, 10 + outcome.full_pages * 4) << "seed " << seed << " kind " << kind << " names " << names.size();
  }
}

TEST(SplitPlan, WasteIsBoundedForOrderlyNames) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    std::set<std::string> names;
    const auto count = 100 + rng.below(5000);
    const bool hexadecimal = rng.chance(0.5);
    for (std::uint64_t i = 0; names.size() < count; ++i)
      names.insert("p/x" + (hexadecimal ? rng.hex(10) : std::to_string(1'000'000 + i * 3)));
    const auto outcome = play(names, 100, seed);
    ASSERT_EQ(outcome.seen.size(), names.size());
    EXPECT_LE(static_cast<double>(outcome.requests), 4 + 1.6 * static_cast<double>(outcome.full_pages))
        << "seed " << seed << " " << count;
  }
}

TEST(KeyScale, KeepsOrderAndComesBack) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    std::set<std::string> unique;
    for (int i = 0; i < 60; ++i) unique.insert("day-" + std::to_string(1000 + rng.below(8000)) + rng.hex(3));
    const std::vector<std::string> samples(unique.begin(), unique.end());
    const KeyScale scale(samples);
    for (std::size_t i = 1; i < samples.size(); ++i) ASSERT_LT(scale.value(samples[i - 1]), scale.value(samples[i]));
    for (int i = 0; i < 100; ++i) {
      const auto value = rng.below(scale.limit());
      ASSERT_EQ(scale.value(scale.name(value)), value) << scale.name(value);
    }
  }
}

TEST(KeyScale, HasNoCutsWhereThereIsNoScale) {
  EXPECT_EQ(KeyScale({}).name(0), "");
  EXPECT_EQ(KeyScale({"same"}).limit(), 1u);
  const KeyScale wild({"\xc3\xa9", "\xc3\xaa"});
  EXPECT_EQ(wild.name(0), "") << "half a character is no key";
}

TEST(WalkCursor, RelationsOfFolders) {
  WalkCursor walk("t/", "t/c/x", "token", 5, nullptr);
  EXPECT_EQ(walk.relation("t/a/"), Relation::kLastPage);
  EXPECT_EQ(walk.relation("t/c/"), Relation::kFrontier);
  EXPECT_EQ(walk.relation("t/d/"), Relation::kAhead);
  EXPECT_EQ(walk.relation("u/"), Relation::kOutside);
  walk.on_page("t/e/y", "next");
  EXPECT_EQ(walk.relation("t/a/"), Relation::kBehind);
  EXPECT_EQ(walk.relation("t/c/"), Relation::kBehind);
  EXPECT_EQ(walk.relation("t/d/"), Relation::kLastPage);
  EXPECT_EQ(walk.relation("t/e/"), Relation::kFrontier);
  EXPECT_EQ(walk.token(), "next");
  EXPECT_TRUE(walk.jump());
  EXPECT_TRUE(walk.jump());
  EXPECT_FALSE(walk.jump());
  walk.on_page("t/f/", "more");
  EXPECT_TRUE(walk.jump()) << "a walk in order begins anew";
}

}  // namespace
}  // namespace thermo::catalog
