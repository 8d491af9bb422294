#include "front/fuse/notifier.h"

#include <pthread.h>
#include <signal.h>
#include <sys/uio.h>

#include <cerrno>

#include "base/log.h"

namespace thermo::fuse {
namespace {

constexpr std::uint32_t kEpochSince = 44;

}  // namespace

Notifier::Notifier(int device, const Negotiated& agreed, metrics::Registry& metrics)
    : device_(device),
      agreed_(agreed),
      sent_(metrics.counter("thermocline_fuse_invalidations_total", "Names that the kernel was told to look up again")),
      dropped_(
          metrics.counter("thermocline_fuse_invalidations_dropped_total",
                          "Invalidations dropped because the queue was full; such names stay until their validity runs out")) {}

void Notifier::start() {
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "fuse-notify");
}

void Notifier::invalidate_entry(vfs::NodeId parent, std::string name) {
  MutexLock lock(mutex_);
  if (stopping_ || everything_) return;
  if (queue_.size() >= kMaxQueued) {
    if (agreed_.minor >= kEpochSince) {
      queue_.clear();
      everything_ = true;
    } else {
      queue_.pop_front();
      dropped_.add();
    }
  }
  if (!everything_) queue_.emplace_back(parent, std::move(name));
  work_.notify_one();
}

void Notifier::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    queue_.clear();
    work_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void Notifier::run() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  mutex_.lock();
  while (!stopping_) {
    if (everything_) {
      everything_ = false;
      mutex_.unlock();
      send_epoch();
      mutex_.lock();
    } else if (!queue_.empty()) {
      const auto [parent, name] = std::move(queue_.front());
      queue_.pop_front();
      mutex_.unlock();
      send_entry(parent, name);
      mutex_.lock();
    } else {
      work_.wait(mutex_);
    }
  }
  mutex_.unlock();
}

void Notifier::send_entry(vfs::NodeId parent, const std::string& name) {
  NotifyInvalEntryOut body{};
  body.parent = parent;
  body.namelen = static_cast<std::uint32_t>(name.size());
  // Expiring keeps a folder that somebody is in; the next look goes to vfs either way.
  body.flags = agreed_.has(kHasExpireOnly) ? kExpireOnly : 0;
  OutHeader header{static_cast<std::uint32_t>(sizeof(OutHeader) + sizeof body + name.size() + 1), kNotifyInvalEntry, 0};
  iovec vectors[3] = {{&header, sizeof header}, {&body, sizeof body}, {const_cast<char*>(name.c_str()), name.size() + 1}};
  if (::writev(device_, vectors, 3) >= 0) {
    sent_.add();
  } else if (errno != ENOENT && errno != ENODEV && errno != ENOTDIR && errno != ENOTCONN) {
    // ENOENT: the kernel does not have that folder or name. ENODEV: unmounted.
    log::warn("fuse: invalidating a name of node {} failed: errno {}", parent, errno);
  }
}

void Notifier::send_epoch() {
  OutHeader header{sizeof(OutHeader), kNotifyIncEpoch, 0};
  iovec vector{&header, sizeof header};
  if (::writev(device_, &vector, 1) >= 0) sent_.add();
  else if (errno != ENODEV && errno != ENOTCONN) log::warn("fuse: invalidating all names failed: errno {}", errno);
}

}  // namespace thermo::fuse
