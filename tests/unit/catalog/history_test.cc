// Random histories of foreign writers, time, restarts and readers against a naive model: every answer must be what the store held
// at some moment within the TTL before the answer, for as long as it claims to be valid; the kernel hears of whatever it was told
// and is no longer so; listings are in order and without duplicates; identities follow versions.
//
// THERMO_CATALOG_HISTORIES=N runs N of them (default 40), THERMO_CATALOG_FIRST=K begins with the K-th.

#include <cstdlib>
#include <deque>
#include <set>

#include "base/rng.h"
#include "history_model.h"
#include "support.h"

namespace thermo::catalog::test {
namespace {

using std::chrono::seconds;

int setting(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}

/// A mount, and the kernel that asks through it.
struct Mount {
  std::string root;
  Nanos ttl{0};
  std::shared_ptr<View> view;
  Kernel kernel;
};

/// A store, what it held, and the mounts that look at it.
struct Table {
  std::shared_ptr<WatchedStore> store;
  Model model;
  Identities identities;
  std::deque<Mount> mounts;
  bool fails = false;
  std::deque<std::string> events;  ///< guarded by the history's mutex
};

class Histories : public CatalogTest, public ::testing::WithParamInterface<int> {
 protected:
  Histories() : rng_(static_cast<std::uint64_t>(GetParam()) * 7919 + 1), settled_(rng_.chance(0.5)) {
    for (int i = 0; i < kTables; ++i) tables_.push_back(std::make_unique<Table>());
    for (auto& table : tables_) make(*table);
    attach();
  }
  ~Histories() override {
    settle();
    detach();
  }

  static constexpr int kTables = 4;
  const std::vector<std::string> names_{"a", "b", "c", "d", "e", "f", "a-b", "a.x"};
  Rng rng_;
  const bool settled_;  ///< nothing is under way when a step begins: the same again each time
  std::vector<std::unique_ptr<Table>> tables_;
  Mutex mutex_{LockRank::kLeaf, "history"};
  Rng weather_ GUARDED_BY(mutex_){1};

  void note(Table& table, std::string event) {
    MutexLock lock(mutex_);
    table.events.push_back(std::to_string(now() / 1000) + " " + std::move(event));
    if (table.events.size() > 1000) table.events.pop_front();
  }
  [[nodiscard]] std::string events(const Table& table) {
    MutexLock lock(mutex_);
    std::string all = table.store->id();
    for (const auto& mount : table.mounts)
      all += " mounted at '" + mount.root + "' for " + std::to_string(mount.ttl.count()) + " ns";
    for (const auto& event : table.events) all += "\n" + event;
    return all;
  }

  [[nodiscard]] TrueTime now() const { return clock_.now().time_since_epoch().count(); }
  [[nodiscard]] const std::string& name() { return names_[rng_.below(names_.size())]; }
  [[nodiscard]] std::string folder_below(const std::string& root) {
    std::string made = root;
    for (auto depth = rng_.below(root.empty() ? 3 : 2); depth > 0; --depth) made += name() + "/";
    return made;
  }
  [[nodiscard]] std::string some_key(const Table& table) {
    auto it = table.model.keys().begin();
    std::advance(it, static_cast<std::ptrdiff_t>(rng_.below(table.model.keys().size())));
    return it->first;
  }

  void make(Table& table) {
    table.store = std::make_shared<WatchedStore>(clock_, "table-" + rng_.hex(8));
    const std::uint32_t page_sizes[] = {1000, 1000, 7, 2};
    table.store->most_keys = page_sizes[rng_.below(4)];
    table.fails = rng_.chance(0.25);
    const Nanos ttls[] = {Nanos::zero(), seconds(5), seconds(60), Nanos::max()};
    table.mounts.emplace_back().ttl = ttls[rng_.below(4)];
    if (rng_.chance(0.5)) {
      auto& second = table.mounts.emplace_back();
      second.ttl = ttls[rng_.below(4)];
      if (rng_.chance(0.5)) second.root = "a/";
    }
    const bool slow = !settled_;
    table.store->before = [this, slow](const store::ListRequest&) {
      std::uint64_t pause = 0;
      {
        MutexLock lock(mutex_);
        if (slow && weather_.chance(0.1)) pause = weather_.below(300);
      }
      if (pause > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause));
    };
    table.store->after = [this, &table](const store::ListRequest& request, Result<store::ListPage>& page) {
      if (!page) return;  // stopped
      std::string event = "    LIST '" + request.prefix + "' " + request.delimiter + " after '" + request.start_after + "' '" +
                          request.continuation + "' max " + std::to_string(request.max_keys) + " ->";
      for (const auto& object : page->objects) event += " " + object.key;
      for (const auto& group : page->prefixes) event += " " + group;
      if (page->truncated) event += " ...";
      bool broken = false;
      {
        MutexLock lock(mutex_);
        broken = table.fails && weather_.chance(0.05);
      }
      if (broken) page = fail(ErrorCode::kThrottled, "SlowDown");
      note(table, event + (broken ? " - lost" : ""));
    };
  }
  void attach() {
    for (auto& table : tables_) {
      for (auto& mount : table->mounts) {
        mount.view = catalog_->view(table->store, mount.root, {mount.ttl});
        mount.view->set_listener(&mount.kernel);
      }
    }
  }
  void detach() {
    for (auto& table : tables_) {
      for (auto& mount : table->mounts) {
        mount.view->set_listener(nullptr);
        mount.view.reset();
        mount.kernel.clear();
      }
    }
  }

  void write(Table& table, const std::string& key) {
    note(table, "write " + key);
    table.store->write(key, rng_.hex(static_cast<int>(1 + rng_.below(3))));
    table.model.set(now(), key, table.store->head({}, key)->etag);
  }
  void erase(Table& table, const std::string& key) {
    note(table, "erase " + key);
    table.store->erase(key);
    table.model.erase(now(), key);
  }

  /// A stop of up to 20 s during which the clock may be set on, or back by so much that it shows.
  void stop_and_go() {
    const auto down = seconds(rng_.below(20));
    Nanos step{0};
    if (rng_.chance(0.3)) step = seconds(rng_.below(7200));
    else if (rng_.chance(0.3)) step = -down - seconds(1 + rng_.below(7200));
    for (auto& table : tables_) {
      note(*table, "restart after " + std::to_string(down.count()) + " s, clock set by " + std::to_string(step.count()) + " ns");
    }
    detach();
    stop();
    clock_.advance(down);
    clock_.step_wall(step);
    for (auto& table : tables_) table->model.restarted();
    start();
    attach();
  }

  [[nodiscard]] TrueTime oldest(const Mount& mount, Nanos valid) const {
    return mount.ttl == Nanos::max() ? kLongAgo : now() - mount.ttl.count() + valid.count();
  }
  [[nodiscard]] TrueTime until(Nanos valid) const { return valid == Nanos::max() ? kForEver : now() + valid.count(); }

  /// The answer is a state of `path` since `from`, and the kernel does not go on believing another one.
  void check_answer(Table& table, Mount& mount, const std::string& path, const State& state, TrueTime from) {
    ASSERT_TRUE(table.model.was(path, state, from))
        << "'" << path << "' was not " << state << " at any time of the last " << (now() - from) / 1000 << " us";
    const auto give_up = std::chrono::steady_clock::now() + seconds(10);
    while (true) {
      const auto believed = mount.kernel.believes(path, now());
      if (!believed || *believed == state) return;
      ASSERT_LT(std::chrono::steady_clock::now(), give_up)
          << "'" << path << "' is " << state << "; the kernel still believes that it is " << *believed;
      std::this_thread::yield();
    }
  }
  void check_entry(Table& table, const std::string& path, const Entry& entry) {
    if (const auto* file = std::get_if<File>(&entry)) {
      ASSERT_EQ(file->key, path);
      ASSERT_EQ(file->version, store::version_id(table.store->id(), file->key, file->etag, file->size));
      ASSERT_EQ(table.identities.check(*file), "");
    } else {
      ASSERT_EQ(std::get<Folder>(entry).prefix, path + "/");
    }
  }

  void check_error(const Table& table, const Error& error) {
    ASSERT_TRUE(table.fails) << error.describe();
    ASSERT_EQ(error.code(), ErrorCode::kThrottled) << error.describe();
  }

  void check_lookup(Table& table, Mount& mount, const std::string& path) {
    note(table, "lookup " + path + " through '" + mount.root + "'");
    const auto prefix = path.substr(0, path.rfind('/') + 1);
    const auto notices = mount.kernel.notices();
    const auto found = mount.view->lookup({}, prefix, path.substr(prefix.size()));
    if (!found) return check_error(table, found.error());
    const auto state = State::of(found->entry);
    ASSERT_LE(found->valid, mount.ttl);
    ASSERT_NO_FATAL_FAILURE(check_answer(table, mount, path, state, oldest(mount, found->valid)));
    if (found->entry) {
      ASSERT_NO_FATAL_FAILURE(check_entry(table, path, *found->entry));
    }
    mount.kernel.told(path, state, until(found->valid), notices);
  }

  void check_list(Table& table, Mount& mount, const std::string& prefix) {
    note(table, "list " + prefix + " through '" + mount.root + "'");
    Told told;
    const auto notices = mount.kernel.notices();
    std::map<std::string, Entry> seen;
    std::string last;
    const auto listed = mount.view->list(
        {}, prefix, {},
        [&](const ListedName& entry) {
          const std::string name(entry.name);
          const bool is_file = std::holds_alternative<File>(*entry.entry);
          EXPECT_LT(last, is_file ? name : name + "/");
          last = is_file ? name : name + "/";
          EXPECT_TRUE(seen.emplace(name, *entry.entry).second) << name << " twice";
          return true;
        },
        &told);
    if (!listed && listed.error().code() != ErrorCode::kNotFound) return check_error(table, listed.error());
    const auto from = oldest(mount, listed ? told.valid : Nanos::zero());
    for (const auto& name : names_) {
      const auto it = seen.find(name);
      const auto state = it == seen.end() ? State{} : State::of(it->second);
      ASSERT_NO_FATAL_FAILURE(check_answer(table, mount, prefix + name, state, from));
      if (it == seen.end()) continue;
      ASSERT_NO_FATAL_FAILURE(check_entry(table, prefix + name, it->second));
      mount.kernel.told(prefix + name, state, until(told.valid), notices);
    }
  }

  void check_number(Table& table, Mount& mount) {
    const auto& numbers = table.identities.numbers();
    if (numbers.empty()) return;
    auto it = numbers.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(rng_.below(numbers.size())));
    const auto entry = mount.view->by_number({}, it->first);
    if (!entry) {
      ASSERT_EQ(entry.error().code(), ErrorCode::kStale) << entry.error().describe();
      return;
    }
    ASSERT_TRUE(std::holds_alternative<File>(*entry));
    ASSERT_EQ(std::get<File>(*entry).number, it->first);
    ASSERT_NO_FATAL_FAILURE(check_entry(table, std::string(it->second), *entry));
  }

  /// The table that it was about.
  Table& step() {
    clock_.advance(std::chrono::microseconds(1));
    Table& table = *tables_[rng_.below(tables_.size())];
    Mount& mount = table.mounts[rng_.below(table.mounts.size())];
    const auto dice = rng_.below(1000);
    if (dice < 200) write(table, folder_below({}) + name());
    else if (dice < 300 && !table.model.keys().empty()) erase(table, some_key(table));
    else if (dice < 330) clock_.advance(seconds(1 + rng_.below(20)));
    else if (dice < 350) clock_.advance(seconds(61));
    else if (dice < 355) clock_.step_wall(seconds(rng_.below(7200)) - seconds(rng_.below(7200)));
    else if (dice < 358) stop_and_go();
    else if (dice < 370) refresh(table, mount);
    else if (dice < 400 && !table.model.keys().empty()) expire(table, mount, some_key(table));
    else if (dice < 430) check_number(table, mount);
    else if (dice < 550) check_list(table, mount, folder_below(mount.root));
    else check_lookup(table, mount, folder_below(mount.root) + name());
    if (settled_) settle();
    return table;
  }
  void refresh(Table& table, Mount& mount) {
    const auto prefix = folder_below(mount.root);
    note(table, "refresh " + prefix);
    mount.view->expire_prefix(prefix);
    table.model.expire(now(), prefix);
    if (rng_.chance(0.5)) check_list(table, mount, prefix);
  }
  void expire(Table& table, Mount& mount, const std::string& key) {
    note(table, "expire " + key);
    mount.view->expire(key);
    table.model.expire(now(), key);
    if (rng_.chance(0.5) && key.starts_with(mount.root)) check_lookup(table, mount, key);
  }
};

TEST_P(Histories, AnswersAreNeverOlderThanTheTtl) {
  for (int steps = 0; steps < 400 * kTables; ++steps) {
    const Table& table = step();
    if (!HasFailure()) continue;
    FAIL() << "history " << GetParam() << ", step " << steps << (settled_ ? "" : " (late answers: may differ)") << "\n"
           << events(table);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Histories,
                         ::testing::Range(setting("THERMO_CATALOG_FIRST", 0),
                                          setting("THERMO_CATALOG_FIRST", 0) + setting("THERMO_CATALOG_HISTORIES", 40)));

}  // namespace
}  // namespace thermo::catalog::test
