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
  std::this_thread::sleep_for(seconds(2));
  over = true;
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace thermo::catalog::test
