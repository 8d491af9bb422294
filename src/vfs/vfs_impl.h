#pragma once
// The Vfs that make_vfs() gives.

#include <atomic>
#include <memory>
#include <string>

#include "vfs/dir_handle.h"
#include "vfs/handle_table.h"
#include "vfs/kernel_relay.h"
#include "vfs/node_table.h"
#include "vfs/store_source.h"
#include "vfs/vfs.h"

namespace thermo::vfs {

/// An open file: one version, whatever becomes of its name.
struct OpenFile {
  NodeId node = 0;
  catalog::File file;
  std::unique_ptr<read::Reader> reader;
  std::atomic<bool> reported_stale{false};  ///< the catalog was told once that this version is gone
};

class VfsImpl final : public Vfs {
 public:
  VfsImpl(std::shared_ptr<catalog::View> view, cache::Cache& cache, MemoryBudget& memory, const Options& options);
  ~VfsImpl() override;

  Result<Entry> lookup(const RequestContext& ctx, NodeId parent, std::string_view name) override;
  Result<Entry> getattr(const RequestContext& ctx, NodeId node, HandleId handle) override;
  Result<HandleId> open(const RequestContext& ctx, NodeId node, int flags) override;
  Result<cache::PageReply> read(const RequestContext& ctx, NodeId node, HandleId handle, cache::ByteRange range,
                                std::span<std::byte> scratch, bool retried) override;
  void release(HandleId handle) override;
  Result<HandleId> open_dir(const RequestContext& ctx, NodeId node) override;
  Result<void> read_dir(const RequestContext& ctx, NodeId node, HandleId handle, std::uint64_t cookie,
                        const std::function<bool(const DirEntry&)>& visit) override;
  void release_dir(HandleId handle) override;
  StatFs statfs() override;
  Result<std::string> get_xattr(const RequestContext& ctx, NodeId node, std::string_view name) override;
  Result<std::vector<std::string>> list_xattr(const RequestContext& ctx, NodeId node) override;
  void set_kernel_cache(KernelCache* kernel) override { relay_.set_kernel(kernel); }
  Result<catalog::Entry> resolve(const RequestContext& ctx, std::string_view path) override;
  cache::ObjectRef object_ref(const catalog::File& file) const override;
  std::shared_ptr<cache::Source> source() const override { return source_; }
  catalog::View& view() override { return *view_; }
  std::string path_of(NodeId node) override;
  std::uint64_t open_handles() const override { return files_.size() + dirs_.size(); }

 private:
  using KnownPtr = NodeTable::KnownPtr;
  using OpenFilePtr = std::shared_ptr<OpenFile>;
  using DirPtr = std::shared_ptr<DirHandle>;

  // Nodes: vfs_nodes.cc.
  /// The mount's root; asked of the catalog once.
  [[nodiscard]] Result<KnownPtr> root(const RequestContext& ctx);
  /// What is known of a node of the current generation, else kStale.
  [[nodiscard]] Result<KnownPtr> known(const RequestContext& ctx, NodeId node);
  [[nodiscard]] Result<KnownPtr> known_folder(const RequestContext& ctx, NodeId node);
  [[nodiscard]] Result<KnownPtr> parent_of(const RequestContext& ctx, const std::string& prefix);
  /// Asks the catalog by name. nullptr: there is no such name (any more).
  [[nodiscard]] Result<KnownPtr> look_again(const RequestContext& ctx, const std::string& key);
  /// As known(), and asked for again when it may no longer be believed. kStale when the node is not the newest version.
  [[nodiscard]] Result<KnownPtr> current_of(const RequestContext& ctx, NodeId node);
  [[nodiscard]] KnownPtr remember(const catalog::Found& found);
  [[nodiscard]] NodeId node_of(const catalog::Entry& entry) const;
  [[nodiscard]] Entry shown(const NodeTable::Known& known) const;
  [[nodiscard]] Nanos left(MonoTime expires) const;

  // Files: vfs_files.cc.
  /// kNotSupported for what claims to be larger than the cache can hold open.
  [[nodiscard]] Result<OpenFilePtr> open_file(const RequestContext& ctx, NodeId node, const catalog::File& file);
  [[nodiscard]] Result<OpenFilePtr> file_of(const RequestContext& ctx, NodeId node, HandleId handle);
  [[nodiscard]] Error version_gone(OpenFile& file, const Error& cause);
  // Folders: vfs_folders.cc.
  [[nodiscard]] Result<DirPtr> dir_of(const RequestContext& ctx, NodeId node, HandleId handle);
  [[nodiscard]] HandleId next_handle() { return next_handle_.fetch_add(1, std::memory_order_relaxed); }
  void count_handles() { handles_gauge_.set(static_cast<std::int64_t>(open_handles())); }

  const std::shared_ptr<catalog::View> view_;
  cache::Cache& cache_;
  MemoryBudget& memory_;
  const Options options_;
  const std::shared_ptr<cache::Source> source_;
  metrics::Gauge& handles_gauge_;
  metrics::Counter& reopened_;
  metrics::Counter& stale_reads_;

  NodeTable nodes_;
  Mutex root_mutex_{LockRank::kVfs, "vfs root"};
  KnownPtr root_ GUARDED_BY(root_mutex_);
  std::atomic<HandleId> next_handle_;
  HandleTable<OpenFile> files_;
  HandleTable<DirHandle> dirs_;
  KernelRelay relay_;
};

}  // namespace thermo::vfs
