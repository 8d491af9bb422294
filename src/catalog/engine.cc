#include "catalog/engine.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace thermo::catalog {
namespace {

constexpr std::size_t kFoldersCounted = 4096;

metrics::Counter& lists(const Options& options, const char* reason) {
  return options.metrics->counter("thermocline_catalog_lists_total", "LIST requests, by what they were for",
                                  {{"reason", reason}});
}
metrics::Counter& lookups(const Options& options, const char* answer) {
  return options.metrics->counter("thermocline_catalog_lookups_total", "Lookups, by where the answer came from",
                                  {{"answer", answer}});
}

}  // namespace

EngineShared::EngineShared(io::KvStore& kv_in, const Options& options)
    : kv(kv_in),
      clock(*options.clock),
      stamps(*options.clock),
      writer(kv_in, *options.clock, stamps),
      list_threads(std::max<std::size_t>(2, options.list_threads)),
      name_lists(lists(options, "name")),
      folder_lists(lists(options, "folder")),
      walk_lists(lists(options, "walk")),
      lists_under_way(
          options.metrics->gauge("thermocline_catalog_lists_under_way", "LIST requests whose answers are not yet written down")),
      lookups_known(lookups(options, "known")),
      lookups_asked(lookups(options, "store")),
      pool({.name = "list", .threads = list_threads, .max_queued = 65'536}) {}

void ListenerSlot::set(Listener* listener) {
  MutexLock lock(mutex_);
  listener_ = listener;
  while (running_ > 0) idle_.wait(mutex_);
}

void ListenerSlot::call(const std::vector<Notice>& notices, const std::string& root) {
  Listener* listener = nullptr;
  {
    MutexLock lock(mutex_);
    listener = listener_;
    if (listener == nullptr) return;
    ++running_;
  }
  for (const auto& notice : notices) {
    if (notice.prefix.starts_with(root)) listener->changed(notice.prefix, notice.name);
  }
  MutexLock lock(mutex_);
  --running_;
  idle_.notify_all();
}

Engine::Engine(EngineShared& shared, StoreNumber number, const std::string& store_id)
    : shared_(shared), knowledge_(shared.kv, number, store_id, kNamesInMemory), applier_(knowledge_, shared.writer) {}

Result<void> Engine::open() {
  if (shared_.untrusted != 0) knowledge_.floors().expire({}, shared_.untrusted);
  TRY_ASSIGN(const auto unordered, shared_.kv.get(unordered_key(knowledge_.store())));
  if (unordered) (void)applier_.set_unordered();
  const std::string header = floor_key(knowledge_.store(), {});
  return shared_.kv.scan(header, [&](std::string_view key, std::string_view value, io::KvStore::Cursor&) {
    if (!key.starts_with(header)) return false;
    knowledge_.floors().expire(key.substr(kStoreHeader), static_cast<WallNanos>(read_be64(value)));
    return true;
  });
}

Engine::Question Engine::question(const RequestContext& ctx, const store::ObjectStorePtr& store) const {
  Question question{ctx, store};
  // Others may wait for the answer: the one who asked first may give up, the question goes on.
  question.ctx.stop = shared_.stop.get_token();
  question.ctx.may_wait = true;
  return question;
}

void Engine::list(const Question& question, store::ListRequest request, metrics::Counter& counter,
                  std::function<void(Result<store::ListPage>)> then) {
  counter.add();
  shared_.lists_under_way.add(1);
  auto shared_then = std::make_shared<decltype(then)>([&gauge = shared_.lists_under_way, then = std::move(then)](auto page) {
    then(std::move(page));
    gauge.add(-1);
  });
  const auto submitted = shared_.pool.submit(question.ctx.priority,
                                             [self = shared_from_this(), question, request = std::move(request), shared_then] {
                                               if (const auto live = question.ctx.check(self->shared_.clock); !live)
                                                 return (*shared_then)(fail(live.error()));
                                               (*shared_then)(question.store->list_page(question.ctx, request));
                                             });
  if (!submitted) (*shared_then)(fail(submitted.error()));
}

void Engine::notify(const std::vector<Notice>& notices) {
  if (notices.empty()) return;
  decltype(listeners_) listeners;
  {
    MutexLock lock(listeners_mutex_);
    listeners = listeners_;
  }
  for (const auto& [root, slot] : listeners) slot->call(notices, root);
}

void Engine::add_listener(const std::string& root, std::shared_ptr<ListenerSlot> slot) {
  MutexLock lock(listeners_mutex_);
  std::erase_if(listeners_, [](const auto& entry) { return entry.second.use_count() == 1; });
  listeners_.emplace_back(root, std::move(slot));
}

std::uint32_t Engine::pages_worth(std::string_view prefix, std::string_view name, const KnownName& folder, WallNanos need) {
  if (folder.pages == 1) return kBigPages;
  MutexLock lock(singles_mutex_);
  if (singles_.size() > kFoldersCounted) singles_.clear();
  auto& single = singles_[std::string(prefix)];
  if (single.since < need) single = {};
  if (single.since == 0) single.since = std::max(need, shared_.stamps.now());
  if (single.name != name) {
    single.name = name;
    ++single.count;
  }
  if (single.count <= std::max<std::uint32_t>(1, folder.pages)) return 0;
  // What is known of a big one may be where the last listing gave up.
  return std::max(kBigPages, 2 * std::min(folder.pages, UINT32_MAX / 2));
}

void Engine::expire_prefix(const std::string& prefix) {
  const WallNanos at = shared_.stamps.next();
  knowledge_.floors().expire(prefix, at);
  {
    MutexLock lock(walks_mutex_);
    std::erase_if(walks_, [&](const auto& walk) { return walk.first.starts_with(prefix) || prefix.starts_with(walk.first); });
  }
  // Also after a restart, and where the answer would be believed for ever.
  io::KvBatch batch;
  const std::string key = floor_key(knowledge_.store(), prefix);
  const auto scanned = shared_.kv.scan(key, [&](std::string_view below, std::string_view, io::KvStore::Cursor&) {
    if (!below.starts_with(key)) return false;
    batch.remove(below);
    return true;
  });
  std::string value;
  append_be64(value, static_cast<std::uint64_t>(at));
  batch.put(key, value);
  batch.put(meta_key("clock"), encode(shared_.stamps.mark()));
  const auto written = scanned ? shared_.kv.write(batch) : scanned;
  if (!written) log::warn("catalog: a refresh of '{}' will not survive a restart: {}", prefix, written.error().describe());
}

}  // namespace thermo::catalog
