#include "app/daemon.h"

#include <fmt/core.h>

#include <algorithm>

#include "app/places.h"
#include "base/log.h"
#include "front/fuse/connection.h"
#include "front/fuse/mount.h"
#include "io/file.h"

namespace thermo::app {
namespace {

constexpr std::size_t kDevicePoolThreads = 16;
constexpr std::size_t kReadPoolThreads = 64;

}  // namespace

Daemon::Daemon(Options options)
    : options_(std::move(options)),
      clock_(Clock::system()),
      started_(clock_.now()),
      memory_(options_.settings.size("memory"), clock_),
      stores_(registry_, clock_, options_.settings.count("connections")),
      device_pool_({"device", kDevicePoolThreads, 4096}),
      read_pool_({"read", kReadPoolThreads, 4096}) {}

Result<std::unique_ptr<Daemon>> Daemon::open(Options options) {
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(options)));
  TRY(daemon->open_parts());
  return daemon;
}

Result<void> Daemon::open_parts() {
  const std::string& folder = options_.cache_folder;
  const auto inside = [&](const Error& error) {
    const bool named = error.message().find(folder) != std::string_view::npos;
    return named ? error : error.within(fmt::format("cache folder '{}'", folder));
  };
  auto disk = io::open_disk(folder);
  if (!disk) {
    return fail(Error(disk.error().code(),
                      fmt::format("cache folder '{}' cannot be made or used: {}; make it, change its owner, or choose "
                                  "another with --cache",
                                  folder, disk.error().message())));
  }
  auto space = (*disk)->space();
  if (!space) return fail(inside(space.error()));

  cache::Options cache_options;
  cache_options.disk = std::move(*disk);
  cache_options.limit_bytes = options_.settings.share("cache-size", space->total);
  cache_options.memory = &memory_;
  cache_options.metrics = &registry_;
  cache_options.clock = &clock_;
  auto cache = cache::open_cache(cache_options);
  if (!cache) return fail(inside(cache.error()));
  cache_ = std::move(*cache);

  // After the cache, whose lock makes us the only one on this folder.
  catalog::Options catalog_options;
  catalog_options.path = folder + "/catalog";
  catalog_options.clock = &clock_;
  catalog_options.metrics = &registry_;
  auto catalog = catalog::open_catalog(catalog_options);
  if (!catalog) return fail(inside(catalog.error()));
  catalog_ = std::move(*catalog);
  return {};
}

Daemon::~Daemon() {
  unmount_all();
  device_pool_.shutdown();
  read_pool_.shutdown();
  if (catalog_) catalog_->shutdown();
  if (cache_) cache_->shutdown();
}

void Daemon::hold() {
  MutexLock lock(mutex_);
  ++holds_;
}

void Daemon::drop_hold() {
  bool idle = false;
  {
    MutexLock lock(mutex_);
    idle = --holds_ == 0 && options_.ends_when_idle;
  }
  if (idle && options_.on_idle) options_.on_idle();
}

Daemon::Prepared::~Prepared() {
  if (daemon != nullptr) daemon->drop_hold();
}

Result<std::shared_ptr<Daemon::Prepared>> Daemon::prepare(MountSpec spec, std::stop_token stop) {
  {
    MutexLock lock(mutex_);
    if (closing_) return fail(ErrorCode::kCancelled, "the daemon is ending");
    ++holds_;
  }
  auto prepared = std::make_shared<Prepared>();
  prepared->daemon = this;
  prepared->spec = std::move(spec);
  // Channels only go on with a mount: another mount's choice stays.
  if (prepared->spec.debug_fuse) log::set_channel(log::Channel::kFuse, true);
  if (prepared->spec.debug_s3) log::set_channel(log::Channel::kS3, true);
  auto setup = stores_.make(prepared->spec);
  if (!setup) return fail(setup.error());
  prepared->setup = std::move(*setup);
  TRY_ASSIGN(const bool any, check_store(prepared->spec, prepared->setup, clock_, std::move(stop)));
  prepared->empty = !any;
  return prepared;
}

Result<MountPtr> Daemon::attach(Prepared& prepared, fuse::UniqueFd device, bool privileged) {
  TRY(fuse::check_fuse_device(device.get()));
  auto mount = std::make_shared<Mount>();
  mount->id = next_id_.fetch_add(1);
  mount->spec = prepared.spec;
  mount->privileged = privileged;
  mount->since = clock_.now();
  mount->store = prepared.setup.layered;
  const MountSpec& spec = mount->spec;
  mount->device = fuse::mount_served_by(device.get(), spec.mount_point);
  if (!mount->device)
    log::warn("no mount of the descriptor for {} is seen from here: it is not taken down at the end", spec.mount_point);
  mount->view = catalog_->view(mount->store, spec.store.prefix, {spec.ttl});

  vfs::Options vfs_options;
  vfs_options.root_prefix = spec.store.prefix;
  vfs_options.uid = spec.uid;
  vfs_options.gid = spec.gid;
  vfs_options.file_mode = spec.file_mode;
  vfs_options.dir_mode = spec.dir_mode;
  vfs_options.store_name = spec.store.text();
  vfs_options.admin_socket = to_text({options_.socket, mount->id});
  vfs_options.clock = &clock_;
  vfs_options.metrics = &registry_;
  mount->vfs = vfs::make_vfs(mount->view, *cache_, memory_, vfs_options);

  fuse::SessionOptions session_options;
  session_options.device_pool = &device_pool_;
  session_options.read_pool = &read_pool_;
  session_options.metrics = &registry_;
  session_options.clock = &clock_;
  session_options.timeout = spec.timeout;
  session_options.max_minor = spec.fuse_minor;
  session_options.name = spec.mount_point;
  TRY_ASSIGN(mount->session, fuse::FuseSession::start(std::move(device), *mount->vfs, session_options));
  {
    MutexLock lock(mutex_);
    if (closing_) return fail(ErrorCode::kCancelled, "the daemon is ending");  // the session ends with `mount`
    ++holds_;
    mounts_.emplace(mount->id, mount);
    reap_watchers();
    auto done = std::make_shared<std::atomic<bool>>(false);
    watchers_.push_back({std::thread([this, mount, done]() mutable {
                           watch(mount);
                           mount.reset();
                           done->store(true, std::memory_order_release);
                         }),
                         done});
  }
  log::info("mounted {} at {} (mount {}{})", spec.store.text(), spec.mount_point, mount->id,
            prepared.empty ? ", empty so far" : "");
  return mount;
}

void Daemon::watch(const MountPtr& mount) {
  mount->session->wait();
  mount->session->stop();
  log::info("unmounted {} (mount {})", mount->spec.mount_point, mount->id);
  {
    MutexLock lock(mutex_);
    mounts_.erase(mount->id);
  }
  changed_.notify_all();
  drop_hold();
}

void Daemon::reap_watchers() {
  for (auto it = watchers_.begin(); it != watchers_.end();) {
    if (it->done->load(std::memory_order_acquire)) {
      it->thread.join();
      it = watchers_.erase(it);
    } else {
      ++it;
    }
  }
}

Result<MountPtr> Daemon::find(std::uint64_t id) const {
  MutexLock lock(mutex_);
  const auto it = mounts_.find(id);
  if (it == mounts_.end()) return fail(ErrorCode::kNotFound, fmt::format("this daemon has no mount {} (any more)", id));
  return it->second;
}

std::vector<MountPtr> Daemon::mounts() const {
  MutexLock lock(mutex_);
  std::vector<MountPtr> all;
  for (const auto& [id, mount] : mounts_) all.push_back(mount);
  return all;
}

bool Daemon::wait_gone(std::uint64_t id, MonoTime deadline, const std::function<bool()>& give_up) const {
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (!mounts_.contains(id)) return true;
      const MonoTime now = clock_.now();
      if (now >= deadline) return false;
      (void)changed_.wait_until(mutex_, std::min<MonoTime>(deadline, now + Millis(200)));
      if (!mounts_.contains(id)) return true;
    }
    if (give_up && give_up()) return false;
  }
}

bool Daemon::close_if_idle() {
  MutexLock lock(mutex_);
  if (holds_ != 0) return false;
  closing_ = true;
  return true;
}

void Daemon::unmount_all() {
  {
    MutexLock lock(mutex_);
    closing_ = true;
  }
  for (const auto& mount : mounts()) {
    const std::string& path = mount->spec.mount_point;
    // It may be detached by now, and something else be mounted there.
    const bool there = mount->device && fuse::is_mounted_at(path, *mount->device);
    auto gone = there ? fuse::unmount(path, false) : Result<void>();
    if (!gone && gone.error().code() == ErrorCode::kBusy) {
      log::warn("{} is in use: detached now, its users get errors from here on", path);
      gone = fuse::unmount(path, true);
    }
    if (!gone && !mount->session->ended()) log::warn("cannot unmount {}: {}", path, gone.error().message());
    mount->session->stop();
  }
  std::vector<Watcher> watchers;
  {
    MutexLock lock(mutex_);
    watchers.swap(watchers_);
  }
  for (auto& watcher : watchers) watcher.thread.join();
}

}  // namespace thermo::app
