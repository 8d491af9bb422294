// The assembly: table, tier and filler, and the thread that looks after them.

#include "cache/cache.h"

#include <atomic>
#include <functional>
#include <thread>

#include "base/page_memory.h"
#include "cache/object.h"

namespace thermo::cache {
namespace {

constexpr Nanos kTick = Millis(100);
constexpr std::uint64_t kSettleTicks = 30;

class CacheImpl final : public Cache {
 public:
  explicit CacheImpl(std::shared_ptr<Core> core) : core_(std::move(core)) {
    memory_keeper_ =
        std::jthread([this](const std::stop_token& stop) { every_tick(stop, [this](auto tick) { keep_memory(tick); }); });
    tier_keeper_ =
        std::jthread([this](const std::stop_token& stop) { every_tick(stop, [this](auto tick) { keep_tier(tick); }); });
    if (core_->tier.needs_sweep()) {
      sweeper_ = std::jthread([this](const std::stop_token& stop) { core_->tier.sweep(stop); });
    }
  }
  ~CacheImpl() override { shutdown(); }
  CacheImpl(const CacheImpl&) = delete;
  CacheImpl& operator=(const CacheImpl&) = delete;

  ObjectPtr open(const ObjectRef& ref, std::shared_ptr<Source> source) override {
    return std::make_shared<Handle>(core_, core_->table.acquire(ref), std::move(source),
                                    next_handle_.fetch_add(1, std::memory_order_relaxed));
  }

  Result<Residency> residency(const RequestContext& ctx, const ObjectRef& ref) override {
    const EntryPtr entry = core_->table.find(ref.version);
    if (entry) {
      TRY(core_->tier.ensure_loaded(ctx, entry));
      return residency_of(*entry);
    }
    Residency residency;
    residency.size = ref.size;
    TRY_ASSIGN(residency.resident, core_->tier.resident_bytes(ref, ctx.may_wait));
    return residency;
  }

  std::vector<Location> locations(const ObjectRef& ref, ByteRange range) override {
    std::vector<Location> runs;
    if (ref.size == 0 || range.offset >= ref.size || range.length == 0) return runs;
    const std::uint64_t end = std::min(range.end(), ref.size);
    const EntryPtr entry = core_->table.acquire(ref);
    (void)core_->tier.ensure_loaded(RequestContext(), entry);
    {
      MutexLock lock(entry->mutex);
      for (std::uint64_t page = range.offset / kPageBytes; page * kPageBytes < end; ++page) {
        if (!entry->has(page)) continue;
        const std::uint64_t from = std::max(page * kPageBytes, range.offset);
        const std::uint64_t to = std::min((page + 1) * kPageBytes, end);
        if (!runs.empty() && runs.back().range.end() == from) runs.back().range.length += to - from;
        else runs.push_back({{from, to - from}, "warm"});
      }
    }
    core_->table.released(entry);
    return runs;
  }

  Result<std::uint64_t> free(const VersionId& version) override { return core_->tier.free(version); }

  Status status() override {
    Status status;
    status.limit_bytes = core_->tier.space().limit();
    status.used_bytes = core_->tier.space().used();
    status.objects = core_->tier.space().objects();
    status.device_state = to_string(core_->tier.device().condition());
    status.device_reason = core_->tier.device().reason();
    return status;
  }

  void set_limit(std::uint64_t bytes) override {
    core_->tier.space().set_limit(bytes);
    core_->tier.converge();
  }

  void shutdown() override {
    if (closed_.exchange(true)) return;
    for (auto* thread : {&sweeper_, &tier_keeper_, &memory_keeper_}) {
      if (!thread->joinable()) continue;
      thread->request_stop();
      thread->join();
    }
    core_->filler.shutdown();
    core_->tier.close();
  }

 private:
  /// Calls `work` now and then until it is told to stop.
  static void every_tick(const std::stop_token& stop, const std::function<void(std::uint64_t tick)>& work) {
    Mutex mutex(LockRank::kLeaf, "cache keeper");
    CondVar wake;
    const std::stop_callback on_stop(stop, [&] {
      MutexLock lock(mutex);
      wake.notify_all();
    });
    for (std::uint64_t tick = 1; !stop.stop_requested(); ++tick) {
      {
        MutexLock lock(mutex);
        if (!stop.stop_requested()) (void)wake.wait_until(mutex, Clock::system().now() + kTick);
      }
      work(tick);
    }
  }

  /// Gives memory back, whatever the disk does.
  void keep_memory(std::uint64_t tick) {
    core_->filler.expire_held();
    if (tick % kSettleTicks == 0) PageMemory::instance().trim();
  }

  /// May hang as long as the disk does.
  void keep_tier(std::uint64_t tick) {
    core_->tier.probe_if_due();
    if (tick % kSettleTicks == 0) core_->filler.settle_quiet();
    if (core_->tier.space().excess() > 0) core_->tier.converge();
    for (auto& entry : core_->table.trim(EntryTable::kIdleEntries)) {
      core_->tier.settle_record(*entry);
      core_->table.unclaim(entry->ref.version);
    }
  }

  const std::shared_ptr<Core> core_;
  std::atomic<std::uint64_t> next_handle_{1};
  std::atomic<bool> closed_{false};
  std::jthread memory_keeper_;
  std::jthread tier_keeper_;
  std::jthread sweeper_;
};

}  // namespace

Result<std::unique_ptr<Cache>> open_cache(const Options& options) {
  if (!options.disk || options.memory == nullptr || options.metrics == nullptr || options.clock == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "the cache needs a disk, a memory budget, a metrics registry and a clock");
  }
  auto core = std::make_shared<Core>(options);
  TRY(core->tier.open());
  return std::unique_ptr<Cache>(std::make_unique<CacheImpl>(std::move(core)));
}

}  // namespace thermo::cache
