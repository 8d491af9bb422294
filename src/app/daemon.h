#pragma once
// One daemon: owns cache, catalog, buffers, HTTP clients and the mounts of one cache folder. The only place that knows all
// concrete classes.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "app/mount_spec.h"
#include "app/settings.h"
#include "app/store_factory.h"
#include "base/memory_budget.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/thread_pool.h"
#include "cache/cache.h"
#include "catalog/catalog.h"
#include "front/fuse/fd.h"
#include "front/fuse/session.h"
#include "vfs/vfs.h"

namespace thermo::app {

/// A served mount. Commands hold a reference while they work on it, so that an unmount does not pull vfs away under them.
struct Mount {
  std::uint64_t id = 0;
  MountSpec spec;
  bool privileged = false;              ///< by mount(2)
  std::optional<std::uint32_t> device;  ///< minor number of the mount that the session serves, where it can be told
  MonoTime since;
  store::ObjectStorePtr store;
  std::shared_ptr<catalog::View> view;
  std::unique_ptr<vfs::Vfs> vfs;
  std::unique_ptr<fuse::FuseSession> session;
};
using MountPtr = std::shared_ptr<Mount>;

class Daemon {
 public:
  struct Options {
    std::string cache_folder;
    std::string socket;
    Settings settings;
    bool ends_when_idle = false;  ///< ends with its last mount: one that `thermo mount` started
    /// Called when the last mount or mount in preparation is gone (ends_when_idle). Any thread.
    std::function<void()> on_idle;
  };
  /// Opens cache and catalog. Errors name what the user must mend: folder not writable, another daemon (its pid), another
  /// version's cache.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> open(Options options);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// A mount between "the store answers" and "the descriptor is here". Keeps an ends_when_idle daemon alive while it exists.
  struct Prepared {
    Daemon* daemon = nullptr;
    MountSpec spec;
    StoreSetup setup;
    bool empty = false;  ///< no key under the prefix yet
    Prepared() = default;
    ~Prepared();
    Prepared(const Prepared&) = delete;
    Prepared& operator=(const Prepared&) = delete;
  };
  /// Builds the store and asks it for one key. kUnavailable "ending" when the daemon is about to stop (start another one).
  [[nodiscard]] Result<std::shared_ptr<Prepared>> prepare(MountSpec spec, std::stop_token stop);
  /// Serves a mounted connection.
  [[nodiscard]] Result<MountPtr> attach(Prepared& prepared, fuse::UniqueFd device, bool privileged);

  [[nodiscard]] Result<MountPtr> find(std::uint64_t id) const;
  [[nodiscard]] std::vector<MountPtr> mounts() const;
  /// True once the mount is gone; false when `deadline` passed or `give_up` said so first (asked a few times a second).
  [[nodiscard]] bool wait_gone(std::uint64_t id, MonoTime deadline, const std::function<bool()>& give_up) const;

  /// Unmounts everything (lazily where it is busy) and ends all sessions. New mounts are refused from now on. Idempotent.
  void unmount_all();
  /// True: no mount and none in preparation; then new ones are refused.
  [[nodiscard]] bool close_if_idle();

  [[nodiscard]] cache::Cache& cache() { return *cache_; }
  [[nodiscard]] catalog::Catalog& catalog() { return *catalog_; }
  [[nodiscard]] MemoryBudget& memory() { return memory_; }
  [[nodiscard]] metrics::Registry& metrics() { return registry_; }
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] MonoTime started() const { return started_; }
  [[nodiscard]] const Clock& clock() const { return clock_; }

 private:
  explicit Daemon(Options options);
  [[nodiscard]] Result<void> open_parts();
  void hold();
  void drop_hold();
  void watch(const MountPtr& mount);
  void reap_watchers() REQUIRES(mutex_);

  const Options options_;
  const Clock& clock_;
  const MonoTime started_;
  metrics::Registry registry_;
  MemoryBudget memory_;
  StoreFactory stores_;
  std::unique_ptr<cache::Cache> cache_;
  std::unique_ptr<catalog::Catalog> catalog_;
  ThreadPool device_pool_;
  ThreadPool read_pool_;
  std::atomic<std::uint64_t> next_id_{1};

  struct Watcher {
    std::thread thread;
    std::shared_ptr<std::atomic<bool>> done;
  };
  mutable Mutex mutex_{LockRank::kDaemon, "daemon"};
  mutable CondVar changed_;
  std::map<std::uint64_t, MountPtr> mounts_ GUARDED_BY(mutex_);
  std::vector<Watcher> watchers_ GUARDED_BY(mutex_);
  std::size_t holds_ GUARDED_BY(mutex_) = 0;  // mounts and preparations
  bool closing_ GUARDED_BY(mutex_) = false;
};

}  // namespace thermo::app
