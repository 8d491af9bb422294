#include "vfs/kernel_relay.h"

#include <utility>

#include "base/log.h"

namespace thermo::vfs {
namespace {

constexpr Nanos kParentTimeout = std::chrono::seconds(10);

}  // namespace

KernelRelay::KernelRelay(catalog::View& view, NodeTable& nodes, std::string root_prefix, const Clock& clock)
    : view_(view),
      nodes_(nodes),
      root_prefix_(std::move(root_prefix)),
      clock_(clock),
      pool_({.name = "vfsrelay", .threads = 1}) {}

KernelRelay::~KernelRelay() { stop(); }

void KernelRelay::stop() {
  set_kernel(nullptr);
  pool_.shutdown();
}

void KernelRelay::set_kernel(KernelCache* kernel) {
  MutexLock lock(mutex_);
  kernel_ = kernel;
  while (kernel == nullptr && running_ > 0) idle_.wait(mutex_);
}

void KernelRelay::changed(const std::string& prefix, const std::string& name) {
  const bool hidden = name.starts_with(kHiddenObject);
  const std::string key = prefix + (hidden ? name.substr(kHiddenObject.size()) : name);
  nodes_.forget_key(key);
  if (!hidden) nodes_.forget_key(key + "/");
  invalidate(prefix, name);
}

void KernelRelay::invalidate(const std::string& prefix, const std::string& name) {
  {
    MutexLock lock(mutex_);
    if (kernel_ == nullptr) return;
  }
  if (prefix == root_prefix_) return tell(kRootNode, name);
  if (const auto known = nodes_.find_key(prefix)) return tell(entry_node(known->entry), name);
  const auto queued = pool_.submit(Priority::kForeground, [this, prefix, name] {
    const auto folder = view_.folder(RequestContext::with_timeout(clock_, kParentTimeout), prefix);
    if (folder) tell(make_node(folder->number, kFolderGeneration), name);
    else
      log::warn("cannot invalidate '{}{}' in the kernel: {}; it is seen again when its time is over", prefix, name,
                folder.error().describe());
  });
  if (!queued) {
    log::debug("invalidation of '{}{}' not queued: {}", prefix, name, queued.error().describe());
  }
}

void KernelRelay::tell(NodeId parent, const std::string& name) {
  KernelCache* kernel = nullptr;
  {
    MutexLock lock(mutex_);
    kernel = kernel_;
    if (kernel == nullptr) return;
    ++running_;
  }
  kernel->invalidate_entry(parent, name);
  MutexLock lock(mutex_);
  if (--running_ == 0) idle_.notify_all();
}

}  // namespace thermo::vfs
