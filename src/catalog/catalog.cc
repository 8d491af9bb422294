#include <filesystem>
#include <fstream>
#include <utility>

#include "base/log.h"
#include "base/rng.h"
#include "catalog/view.h"

namespace thermo::catalog {
namespace {

namespace fs = std::filesystem;

/// Beside the database: which range of numbers it uses. Survives the database, so that its successor takes a higher range.
std::string range_path(const std::string& path) { return path + ".range"; }

std::uint64_t read_range(const std::string& path) {
  std::ifstream in(range_path(path));
  std::uint64_t range = 0;
  return in >> range ? range : 0;
}

/// A range above the last one; a random one where none is known, so that numbers of a database deleted by hand do not come again.
Result<Number> take_range(const std::string& path) {
  constexpr std::uint64_t kRanges = (Number{1} << kNumberBits) / kNumberRange;
  auto range = read_range(path);
  range = range == 0 ? 1 + Rng::from_os().below(kRanges / 2) : range + 1;
  if (range >= kRanges) range = 1 + Rng::from_os().below(kRanges / 2);
  std::ofstream out(range_path(path), std::ios::trunc);
  out << range << '\n';
  out.close();
  if (!out) return fail(ErrorCode::kIo, "cannot write " + range_path(path) + "; is the cache folder writable?");
  return range * kNumberRange;
}

class RocksCatalog final : public Catalog {
 public:
  RocksCatalog(std::unique_ptr<io::KvStore> kv, const Options& options) : kv_(std::move(kv)), shared_(*kv_, options) {}
  ~RocksCatalog() override { shutdown(); }

  Result<void> open(Number first_number) {
    TRY(shared_.writer.numbers.open(first_number));
    TRY_ASSIGN(const auto counts, kv_->get(meta_key("counts")));
    if (counts && counts->size() == 16) {
      shared_.writer.files = static_cast<std::int64_t>(read_be64(*counts));
      shared_.writer.folders = static_cast<std::int64_t>(read_be64(counts->substr(8)));
    }
    TRY(resume_clock());
    closed_ = false;
    return {};
  }

  std::shared_ptr<View> view(store::ObjectStorePtr store, const std::string& root_prefix, Freshness freshness) override {
    const auto known = [&]() -> std::shared_ptr<Engine> {
      MutexLock lock(mutex_);
      const auto it = engines_.find(store->id());
      return it == engines_.end() ? nullptr : it->second;
    };
    std::shared_ptr<Engine> engine = known();
    if (!engine) {
      // One at a time: each takes the next free number.
      MutexLock making(making_);
      engine = known();
      if (!engine) engine = make_engine(store->id());
    }
    return std::make_shared<MountView>(std::move(engine), std::move(store), root_prefix, freshness);
  }

  Stats stats() override {
    Stats stats;
    stats.files = static_cast<std::uint64_t>(std::max<std::int64_t>(0, shared_.writer.files));
    stats.folders = static_cast<std::uint64_t>(std::max<std::int64_t>(0, shared_.writer.folders));
    stats.memory_bytes = kv_->memory_bytes();
    std::vector<std::shared_ptr<Engine>> engines;
    {
      MutexLock lock(mutex_);
      for (const auto& [id, engine] : engines_) engines.push_back(engine);
    }
    for (const auto& engine : engines) stats.memory_bytes += engine->knowledge().memory().memory_bytes();
    return stats;
  }

  void shutdown() override {
    if (std::exchange(closed_, true)) return;
    shared_.stop.request_stop();
    shared_.pool.shutdown();
    std::string counts;
    append_be64(counts, static_cast<std::uint64_t>(shared_.writer.files.load()));
    append_be64(counts, static_cast<std::uint64_t>(shared_.writer.folders.load()));
    io::KvBatch batch;
    batch.put(meta_key("counts"), counts);
    batch.put(meta_key("clock"), encode(shared_.stamps.mark()));
    auto written = kv_->write(batch);
    if (written) written = kv_->flush();
    if (!written) log::warn("catalog: {}; what was learnt last is asked of the store again", written.error().describe());
  }

 private:
  Result<void> resume_clock() {
    TRY_ASSIGN(const auto untrusted, kv_->get(meta_key("untrusted")));
    if (untrusted) shared_.untrusted = static_cast<WallNanos>(read_be64(*untrusted));
    TRY_ASSIGN(const auto written, kv_->get(meta_key("clock")));
    if (!written) return {};
    TRY_ASSIGN(const auto mark, decode_mark(*written));
    if (shared_.stamps.resume(mark)) return {};
    log::warn("catalog: the clock was set back while nothing ran; all names are asked of the stores again");
    shared_.untrusted = shared_.stamps.next();
    std::string value;
    append_be64(value, static_cast<std::uint64_t>(shared_.untrusted));
    io::KvBatch batch;
    batch.put(meta_key("untrusted"), value);
    batch.put(meta_key("clock"), encode(shared_.stamps.mark()));
    return kv_->write(batch);
  }

  /// The store's number is written once; a database that cannot tell or keep it serves this run with a number of its own.
  std::shared_ptr<Engine> make_engine(const std::string& id) REQUIRES(making_) {
    StoreNumber number = 0;
    const auto known = kv_->get(store_key(id));
    if (!known) {
      number = UINT32_MAX - static_cast<StoreNumber>(engines_without_record_++);
      log::warn("catalog: {}: nothing of '{}' is remembered in this run", known.error().describe(), id);
    } else if (*known && (*known)->size() == 4) {
      number = read_be32(**known);
    } else {
      std::string from = store_key({});
      StoreNumber highest = 0;
      (void)kv_->scan(from, [&](std::string_view key, std::string_view value, io::KvStore::Cursor&) {
        if (!key.starts_with(from)) return false;
        if (value.size() == 4) highest = std::max(highest, read_be32(value));
        return true;
      });
      number = highest + 1;
      std::string value;
      append_be32(value, number);
      io::KvBatch batch;
      batch.put(store_key(id), value);
      if (const auto written = kv_->write(batch); !written) log::warn("catalog: {}", written.error().describe());
    }
    auto engine = std::make_shared<Engine>(shared_, number, id);
    if (const auto opened = engine->open(); !opened) log::warn("catalog: {}", opened.error().describe());
    MutexLock lock(mutex_);
    return engines_.emplace(id, std::move(engine)).first->second;
  }

  std::unique_ptr<io::KvStore> kv_;
  EngineShared shared_;
  Mutex making_{LockRank::kDaemon, "catalog new store"};
  std::uint32_t engines_without_record_ GUARDED_BY(making_) = 0;
  Mutex mutex_{LockRank::kCatalog, "catalog stores"};
  std::map<std::string, std::shared_ptr<Engine>> engines_ GUARDED_BY(mutex_);
  bool closed_ = true;  // until it is open
};

Result<std::unique_ptr<Catalog>> open_once(const Options& options) {
  TRY_ASSIGN(auto kv, io::open_kv({.path = options.path, .cache_bytes = options.kv_cache_bytes}));
  TRY_ASSIGN(const auto bound, kv->get(meta_key("next-number")));
  Number first = 0;
  if (!bound) {
    TRY_ASSIGN(first, take_range(options.path));
  }
  auto catalog = std::make_unique<RocksCatalog>(std::move(kv), options);
  TRY(catalog->open(first));
  return catalog;
}

}  // namespace

Result<std::unique_ptr<Catalog>> open_catalog(const Options& options) {
  std::error_code ignored;
  fs::create_directories(fs::path(options.path).parent_path(), ignored);
  auto opened = open_once(options);
  if (opened || opened.error().code() != ErrorCode::kCorrupt) return opened;

  const std::string aside = options.path + ".damaged";
  log::warn("catalog: {}; it is set aside as {} and begins anew: names are asked of the stores again", opened.error().describe(),
            aside);
  std::error_code error;
  fs::remove_all(aside, error);
  fs::rename(options.path, aside, error);
  if (error) return fail(errno_error(error.value(), "set the damaged catalog " + options.path + " aside"));
  return open_once(options);
}

}  // namespace thermo::catalog
