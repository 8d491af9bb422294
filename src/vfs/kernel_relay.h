#pragma once
// Tells the kernel what the catalog found changed.

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread_pool.h"
#include "catalog/catalog.h"
#include "vfs/node_table.h"
#include "vfs/vfs.h"

namespace thermo::vfs {

/// Prefix under which the catalog shows an object that a folder of the same name hides.
inline constexpr std::string_view kHiddenObject = ".object:";

/// Thread-safe. No lock is held while the kernel side is called. The catalog must not be called back from its listener, so a
/// parent that is not remembered is looked up by a thread of our own.
class KernelRelay final : public catalog::Listener {
 public:
  KernelRelay(catalog::View& view, NodeTable& nodes, std::string root_prefix, const Clock& clock);
  ~KernelRelay() override;

  void set_kernel(KernelCache* kernel);
  void changed(const std::string& prefix, const std::string& name) override;
  /// Invalidates one name without regard to what is remembered of it.
  void invalidate(const std::string& prefix, const std::string& name);
  /// Drops what waits and joins. Idempotent.
  void stop();

 private:
  void tell(NodeId parent, const std::string& name);

  catalog::View& view_;
  NodeTable& nodes_;
  const std::string root_prefix_;
  const Clock& clock_;
  Mutex mutex_{LockRank::kVfs, "vfs kernel relay"};
  CondVar idle_;
  KernelCache* kernel_ GUARDED_BY(mutex_) = nullptr;
  int running_ GUARDED_BY(mutex_) = 0;
  ThreadPool pool_;
};

}  // namespace thermo::vfs
