// Readers, writers and time at once.

#include "base/rng.h"
#include "history_model.h"
#include "support.h"

namespace thermo::catalog::test {
namespace {

using std::chrono::seconds;

TEST_F(CatalogTest, ReadersAndWritersAtOnce) {
  // A fixed set that must always be seen, and names that come and go around it.
  use({.ttl = Millis(20)});
  for (int i = 0; i < 1500; ++i) store_->write("d/k" + std::to_string(10'000 + i));
  settle();
  store_->delay = std::chrono::microseconds(200);
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    Rng rng(1);
    while (!over) {
      const auto key = "d/v" + std::to_string(rng.below(200));
      if (rng.chance(0.5)) store_->write(key, rng.hex(2));
      else store_->erase(key);
      clock_.advance(Millis(1));
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  for (int reader = 0; reader < 3; ++reader) {
    threads.emplace_back([&, reader] {
      Rng rng(static_cast<std::uint64_t>(reader) + 10);
      while (!over) {
        if (rng.chance(0.1)) {
          const auto listed = names_in(*view_, "d/");
          ASSERT_TRUE(listed) << listed.error().describe();
          const auto fixed = std::count_if(listed->begin(), listed->end(), [](const auto& name) { return name[0] == 'k'; });
          ASSERT_EQ(fixed, 1500);
          ASSERT_TRUE(std::is_sorted(listed->begin(), listed->end()));
        } else {
          const auto found = view_->lookup({}, "d/", "k" + std::to_string(10'000 + rng.below(1500)));
          ASSERT_TRUE(found) << found.error().describe();
          ASSERT_TRUE(found->entry);
        }
        if (rng.chance(0.02)) view_->expire("d/k" + std::to_string(10'000 + rng.below(1500)));
      }
    });
  }
  std::this_thread::sleep_for(seconds(1));
  over = true;
  for (auto& thread : threads) thread.join();
}

TEST_F(CatalogTest, ConcurrentAnswersAreNeverOlderThanTheTtl) {
  constexpr Nanos kTtl = seconds(5);
  use({.ttl = kTtl});
  store_->most_keys = 7;
  Mutex mutex(LockRank::kDaemon, "model");
  Model model;  // under the mutex, together with what it is a model of
  const std::vector<std::string> names{"a", "b", "c", "d", "a-b", "a.x"};
  const auto now = [&] { return clock_.now().time_since_epoch().count(); };
  const auto name = [&](Rng& rng) { return names[rng.below(names.size())]; };
  const auto folder = [&](Rng& rng) {
    std::string made;
    for (auto depth = rng.below(3); depth > 0; --depth) made += name(rng) + "/";
    return made;
  };
  const auto is = [&](const std::string& path, const State& state, TrueTime from) {
    MutexLock lock(mutex);
    EXPECT_TRUE(model.was(path, state, from)) << "'" << path << "' was not " << state << " within the TTL";
  };
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    Rng rng(1);
    while (!over) {
      {
        MutexLock lock(mutex);
        if (rng.chance(0.05)) clock_.advance(seconds(2));
        const auto key = folder(rng) + name(rng);
        const bool writes = rng.chance(0.6);
        if (writes) store_->write(key, rng.hex(2));
        else store_->erase(key);
        // Whoever looked before the change has an earlier time, also by the catalog's own stamps, which run a little ahead of a
        // clock that stands still.
        clock_.advance(Millis(1));
        if (writes) model.set(now(), key, store_->head({}, key)->etag);
        else model.erase(now(), key);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
  });
  for (std::uint64_t reader = 0; reader < 3; ++reader) {
    threads.emplace_back([&, reader] {
      Rng rng(reader + 10);
      while (!over && !HasFailure()) {
        const auto prefix = folder(rng);
        const auto from = now() - kTtl.count();
        if (rng.chance(0.7)) {
          const auto one = name(rng);
          const auto found = view_->lookup({}, prefix, one);
          ASSERT_TRUE(found) << found.error().describe();
          is(prefix + one, State::of(found->entry), from + found->valid.count());
          continue;
        }
        Told told;
        std::map<std::string, State> seen;
        const auto visit = [&](const ListedName& entry) { return seen.emplace(entry.name, State::of(*entry.entry)).second; };
        const auto listed = view_->list({}, prefix, {}, visit, &told);
        if (!listed) {
          ASSERT_EQ(listed.error().code(), ErrorCode::kNotFound) << listed.error().describe();
        }
        for (const auto& one : names) {
          const auto it = seen.find(one);
          is(prefix + one, it == seen.end() ? State{} : it->second, from + told.valid.count());
        }
      }
    });
  }
  std::this_thread::sleep_for(seconds(1));
  over = true;
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace thermo::catalog::test
