#pragma once
// A memory store whose LISTs are counted, delayed, made to fail or held back; and a catalog on a folder of its own.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/mutex.h"
#include "catalog/catalog.h"
#include "store/memory/memory_store.h"

namespace thermo::catalog::test {

class WatchedStore final : public store::ObjectStore {
 public:
  explicit WatchedStore(const Clock& clock = Clock::system(), const std::string& name = "catalog")
      : inner_(store::make_memory_store(name, clock)) {}

  const std::string& id() const override { return inner_->id(); }
  Result<store::ObjectInfo> head(const RequestContext& ctx, const std::string& key) override {
    ++heads;
    return inner_->head(ctx, key);
  }
  Result<store::GetInfo> get_range(const RequestContext& ctx, const std::string& key, const std::string& if_match,
                                   std::uint64_t size, store::ByteRange range, BodySink& sink) override {
    return inner_->get_range(ctx, key, if_match, size, range, sink);
  }
  Result<store::ListPage> list_page(const RequestContext& ctx, const store::ListRequest& request) override {
    ++lists;
    const int now = ++in_flight;
    for (int seen = most_in_flight; now > seen && !most_in_flight.compare_exchange_weak(seen, now);) {
    }
    {
      MutexLock lock(mutex_);
      log_.push_back(request);
    }
    if (before) before(request);
    auto limited = request;
    limited.max_keys = std::min(limited.max_keys, most_keys);
    auto page = inner_->list_page(ctx, limited);
    if (after) after(request, page);
    const auto pause = delay + (request.max_keys > 100 ? page_delay : Nanos::zero());
    if (pause > Nanos::zero()) std::this_thread::sleep_for(pause);
    --in_flight;
    return page;
  }
  Result<store::PutInfo> put(const RequestContext& ctx, const std::string& key, std::span<const std::byte> body,
                             const store::PutOptions& options) override {
    return inner_->put(ctx, key, body, options);
  }
  Result<std::vector<store::RemoveFailure>> remove(const RequestContext& ctx, const std::vector<std::string>& keys) override {
    return inner_->remove(ctx, keys);
  }

  void write(const std::string& key, std::string_view body = "x") {
    const auto done = inner_->put({}, key, std::as_bytes(std::span(body)), {});
    ASSERT_TRUE(done) << done.error().describe();
  }
  void erase(const std::string& key) { ASSERT_TRUE(inner_->remove({}, {key})); }
  [[nodiscard]] std::vector<store::ListRequest> log() {
    MutexLock lock(mutex_);
    return log_;
  }

  std::atomic<int> lists{0};
  std::atomic<int> heads{0};
  std::atomic<int> in_flight{0};
  std::atomic<int> most_in_flight{0};
  // Set while nothing is running.
  Nanos delay{0};
  Nanos page_delay{0};
  std::uint32_t most_keys = 1000;  ///< of a page, whatever was asked for
  std::function<void(const store::ListRequest&)> before;
  std::function<void(const store::ListRequest&, Result<store::ListPage>&)> after;

 private:
  const store::ObjectStorePtr inner_;
  Mutex mutex_{LockRank::kStore, "watched store"};
  std::vector<store::ListRequest> log_;
};

/// "name" of files, "name/" of folders, in the order of the listing.
inline Result<std::vector<std::string>> names_in(View& view, const std::string& prefix, std::string_view after = {},
                                                 std::size_t most = SIZE_MAX) {
  std::vector<std::string> names;
  TRY(view.list(
      {}, prefix, after,
      [&](const ListedName& entry) {
        names.push_back(std::string(entry.name) + (std::holds_alternative<Folder>(*entry.entry) ? "/" : ""));
        return names.size() < most;
      },
      nullptr));
  return names;
}

/// How much longer than usual things may take.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kPatience = 6;
#else
inline constexpr int kPatience = 1;
#endif

/// The shortest of a few runs: the machine may be busy with something else.
template <typename Run>
Nanos shortest(Nanos enough, const Run& run) {
  Nanos best = Nanos::max();
  for (int attempt = 0; attempt < 5 && best >= enough; ++attempt) {
    const auto start = std::chrono::steady_clock::now();
    run(attempt);
    best = std::min<Nanos>(best, std::chrono::steady_clock::now() - start);
  }
  return best;
}

class CatalogTest : public ::testing::Test {
 protected:
  CatalogTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    // In memory where there is such a file system: what a disk keeps is the database's business, and its flushes take their time.
    const std::filesystem::path memory = "/dev/shm";
    dir_ = (::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path()) /
           ("catalog-test-" + std::to_string(::getpid()) + "-" + info->test_suite_name() + "-" + info->name());
    std::filesystem::remove_all(dir_);
    start();
  }
  ~CatalogTest() override {
    stop();
    std::filesystem::remove_all(dir_);
  }

  void start() {
    Options options;
    options.path = dir_ / "catalog";
    options.clock = &clock_;
    options.metrics = &metrics_;
    auto opened = open_catalog(options);
    ASSERT_TRUE(opened) << opened.error().describe();
    catalog_ = std::move(*opened);
    view_ = catalog_->view(store_, root_, freshness_);
  }
  void stop() {
    view_.reset();
    catalog_.reset();
  }
  void restart() {
    stop();
    start();
  }
  void use(Freshness freshness, const std::string& root = {}) {
    freshness_ = freshness;
    root_ = root;
    view_ = catalog_->view(store_, root_, freshness_);
  }

  /// Until all that was asked is written down: a lookup returns as soon as it has its own answer, and asks for more than that.
  void settle() {
    const auto& under_way = metrics_.gauge("thermocline_catalog_lists_under_way", "");
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (under_way.value() != 0 || store_->in_flight != 0) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up) << under_way.value() << " LISTs do not end";
      std::this_thread::yield();
    }
  }
  /// How many LISTs were made since the last call.
  int take_lists() {
    settle();
    return store_->lists.exchange(0);
  }

  // These four leave nothing under way, so that what a test changes next is not seen by a late answer.
  [[nodiscard]] std::optional<Entry> look(const std::string& prefix, std::string_view name) {
    auto found = view_->lookup({}, prefix, name);
    EXPECT_TRUE(found) << prefix << name << ": " << found.error().describe();
    settle();
    return found ? found->entry : std::nullopt;
  }
  [[nodiscard]] File file(const std::string& prefix, std::string_view name) {
    const auto entry = look(prefix, name);
    EXPECT_TRUE(entry && std::holds_alternative<File>(*entry)) << prefix << name;
    return entry && std::holds_alternative<File>(*entry) ? std::get<File>(*entry) : File{};
  }
  [[nodiscard]] Folder folder(const std::string& prefix, std::string_view name) {
    const auto entry = look(prefix, name);
    EXPECT_TRUE(entry && std::holds_alternative<Folder>(*entry)) << prefix << name;
    return entry && std::holds_alternative<Folder>(*entry) ? std::get<Folder>(*entry) : Folder{};
  }
  [[nodiscard]] std::vector<std::string> names(const std::string& prefix, std::string_view after = {}) {
    auto listed = names_in(*view_, prefix, after);
    settle();
    EXPECT_TRUE(listed) << prefix << ": " << listed.error().describe();
    return listed ? *listed : std::vector<std::string>{"<error>"};
  }

  std::filesystem::path dir_;
  FakeClock clock_;
  metrics::Registry metrics_;
  std::shared_ptr<WatchedStore> store_ = std::make_shared<WatchedStore>(clock_);
  std::string root_;
  Freshness freshness_;
  std::unique_ptr<Catalog> catalog_;
  std::shared_ptr<View> view_;
};

using Names = std::vector<std::string>;

}  // namespace thermo::catalog::test
