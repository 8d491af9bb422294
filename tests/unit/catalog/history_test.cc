// Random histories of foreign writers, time and readers against a naive model: every answer must be what the store held at some moment
// within the TTL before the answer, listings are in order and without duplicates, and identities follow versions.

#include <map>
#include <set>

#include "base/rng.h"
#include "support.h"

namespace thermo::catalog::test {
namespace {

using std::chrono::seconds;

/// What each name was, and until when.
class Model {
 public:
  enum class Kind { kAbsent, kFile, kFolder };
  struct State {
    Kind kind = Kind::kAbsent;
    std::string etag;
    bool operator==(const State&) const = default;
  };

  void set(const std::string& key, const std::string& etag) { keys_[key] = etag; }
  void erase(const std::string& key) { keys_.erase(key); }
  /// To be called after each change.
  void note(WallNanos now) { past_.push_back({now, keys_}); }

  [[nodiscard]] static State at(const std::map<std::string, std::string>& keys, const std::string& path) {
    const auto below = keys.lower_bound(path + "/");
    if (below != keys.end() && below->first.starts_with(path + "/")) return {Kind::kFolder, ""};
    const auto it = keys.find(path);
    return it == keys.end() ? State{} : State{Kind::kFile, it->second};
  }

  /// All states of a name in [from, now].
  [[nodiscard]] std::vector<State> states(const std::string& path, WallNanos from) const {
    std::vector<State> states;
    for (std::size_t i = past_.size(); i-- > 0;) {
      states.push_back(at(past_[i].second, path));
      if (past_[i].first < from) break;
    }
    return states;
  }
  [[nodiscard]] bool was(const std::string& path, const State& state, WallNanos from) const {
    const auto all = states(path, from);
    return std::find(all.begin(), all.end(), state) != all.end();
  }
  [[nodiscard]] const std::map<std::string, std::string>& keys() const { return keys_; }

 private:
  std::map<std::string, std::string> keys_;
  std::vector<std::pair<WallNanos, std::map<std::string, std::string>>> past_;
};

class Histories : public CatalogTest, public ::testing::WithParamInterface<int> {
 protected:
  Model model_;
  std::map<std::string, std::pair<Number, std::pair<std::uint32_t, std::string>>> identities_;  // key -> number, generation, etag
  std::map<std::pair<Number, std::uint32_t>, std::string> versions_;                           // node -> etag

  void write(const std::string& key, const std::string& body) {
    store_->write(key, body);
    model_.set(key, store_->head({}, key)->etag);
    model_.note(clock_.wall());
  }
  void erase(const std::string& key) {
    store_->erase(key);
    model_.erase(key);
    model_.note(clock_.wall());
  }

  void check_file(const File& file) {
    ASSERT_EQ(file.version, store::version_id(store_->id(), file.key, file.etag, file.size));
    // (number, generation) names one version for ever.
    const auto [it, fresh] = versions_.try_emplace({file.number, file.generation}, file.key + file.etag);
    ASSERT_EQ(it->second, file.key + file.etag);
  }

  void check_lookup(const std::string& prefix, const std::string& name, WallNanos from) {
    const auto found = view_->lookup({}, prefix, name);
    ASSERT_TRUE(found) << found.error().describe();
    Model::State state;
    if (found->entry) {
      if (const auto* file = std::get_if<File>(&*found->entry)) {
        state = {Model::Kind::kFile, file->etag};
        ASSERT_EQ(file->key, prefix + name);
        check_file(*file);
      } else {
        state = {Model::Kind::kFolder, ""};
      }
    }
    ASSERT_TRUE(model_.was(prefix + name, state, from)) << prefix << name << " kind " << static_cast<int>(state.kind) << " " << state.etag;
  }

  void check_list(const std::string& prefix, WallNanos from, const std::set<std::string>& candidates) {
    std::set<std::string> seen;
    std::string last;
    const auto listed = view_->list({}, prefix, {},
                                    [&](const ListedName& entry) {
                                      const auto* file = std::get_if<File>(entry.entry);
                                      const std::string name(entry.name);
                                      const std::string order = file != nullptr ? name : name + "/";
                                      EXPECT_LT(last, order);
                                      last = order;
                                      EXPECT_TRUE(seen.insert(name).second) << name << " twice";
                                      const Model::State state{file != nullptr ? Model::Kind::kFile : Model::Kind::kFolder,
                                                               file != nullptr ? file->etag : ""};
                                      EXPECT_TRUE(model_.was(prefix + name, state, from)) << prefix << name;
                                      if (file != nullptr) check_file(*file);
                                      return true;
                                    },
                                    nullptr);
    if (!listed) {
      ASSERT_EQ(listed.error().code(), ErrorCode::kNotFound) << listed.error().describe();
    }
    for (const auto& name : candidates) {
      if (seen.contains(name)) continue;
      ASSERT_TRUE(model_.was(prefix + name, {}, from)) << prefix << name << " is missing";
    }
  }
};

TEST_P(Histories, AnswersAreNeverOlderThanTheTtl) {
  Rng rng(static_cast<std::uint64_t>(GetParam()) * 7919 + 1);
  const std::vector<Nanos> ttls{Nanos::zero(), seconds(5), seconds(60)};
  const auto ttl = ttls[rng.below(ttls.size())];
  use({.ttl = ttl});
  std::set<std::string> names;
  for (int i = 0; i < 6; ++i) names.insert(std::string(1, static_cast<char>('a' + i)));
  names.insert("a-b");
  names.insert("a.x");
  const std::vector<std::string> list(names.begin(), names.end());
  const auto name = [&] { return list[rng.below(list.size())]; };
  const auto prefix = [&] {
    std::string made;
    for (auto depth = rng.below(3); depth > 0; --depth) made += name() + "/";
    return made;
  };
  model_.note(clock_.wall());
  for (int step = 0; step < 400; ++step) {
    const auto from = clock_.wall() - ttl.count();
    switch (rng.below(10)) {
      case 0:
      case 1: write(prefix() + name(), rng.hex(static_cast<int>(1 + rng.below(3)))); break;
      case 2:
        if (!model_.keys().empty()) {
          auto it = model_.keys().begin();
          std::advance(it, static_cast<std::ptrdiff_t>(rng.below(model_.keys().size())));
          erase(std::string(it->first));
        }
        break;
      case 3: clock_.advance(seconds(1 + rng.below(20))); break;
      case 4: clock_.advance(ttl + seconds(1)); break;
      case 5: check_list(prefix(), from, names); break;
      case 6:
        if (rng.chance(0.2)) {
          restart();
        } else if (rng.chance(0.3)) {
          const auto refreshed = prefix();
          view_->expire_prefix(refreshed);
          clock_.advance(Millis(1));
          check_list(refreshed, clock_.wall(), names);
        } else if (!model_.keys().empty()) {
          auto it = model_.keys().begin();
          std::advance(it, static_cast<std::ptrdiff_t>(rng.below(model_.keys().size())));
          const std::string key = it->first;
          view_->expire(key);
          clock_.advance(Millis(1));
          const auto slash = key.rfind('/');
          check_lookup(slash == std::string::npos ? "" : key.substr(0, slash + 1), key.substr(slash == std::string::npos ? 0 : slash + 1),
                       clock_.wall());
        }
        break;
      default: check_lookup(prefix(), name(), from); break;
    }
    if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << "seed " << GetParam() << " step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Histories, ::testing::Range(0, 300));

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
