#pragma once
// A thread that tells the kernel which names to look up again. One of its own: the write may wait for a folder's lock, held by
// somebody who waits for us.

#include <deque>
#include <string>
#include <thread>
#include <utility>

#include "base/metrics.h"
#include "base/mutex.h"
#include "front/fuse/negotiate.h"
#include "vfs/vfs.h"

namespace thermo::fuse {

/// Thread-safe.
class Notifier {
 public:
  /// Names that may wait to be told. Beyond it the kernel is told to look every name up again (7.44), or, where it cannot, the
  /// oldest are dropped: such a name stays as it is until its validity runs out.
  static constexpr std::size_t kMaxQueued = 65536;

  /// `device` must stay open until stop() returned.
  Notifier(int device, const Negotiated& agreed, metrics::Registry& metrics);
  ~Notifier() { stop(); }
  void start();
  /// Returns at once.
  void invalidate_entry(vfs::NodeId parent, std::string name);
  /// Drops what is queued and joins. Idempotent.
  void stop();

 private:
  void run();
  void send_entry(vfs::NodeId parent, const std::string& name);
  void send_epoch();

  const int device_;
  const Negotiated agreed_;
  metrics::Counter& sent_;
  metrics::Counter& dropped_;
  Mutex mutex_{LockRank::kNotify, "fuse notifications"};
  CondVar work_;
  std::deque<std::pair<vfs::NodeId, std::string>> queue_ GUARDED_BY(mutex_);
  bool everything_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace thermo::fuse
