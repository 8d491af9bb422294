#pragma once
// A tree in memory behind vfs::Vfs, with files that make their readers wait on command.

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "vfs/vfs.h"

namespace thermo::fuse::testing {

/// Thread-safe.
class FakeVfs final : public vfs::Vfs {
 public:
  FakeVfs();

  vfs::NodeId add_dir(vfs::NodeId parent, const std::string& name);
  vfs::NodeId add_file(vfs::NodeId parent, const std::string& name, std::string content);
  /// A foreign version: a new generation of the same file, same st_ino. Open handles keep the old bytes.
  vfs::NodeId replace(vfs::NodeId parent, const std::string& name, std::string content);
  /// As the real vfs does it when the catalog notices a foreign version.
  void tell_kernel(vfs::NodeId parent, const std::string& name);

  /// Reads of (and lookups of names in) this node answer `first` to those who may not wait, and block those who may until
  /// released.
  void block(vfs::NodeId node, ErrorCode first);
  void release_blocked(vfs::NodeId node);
  /// As block(), but those who may wait get their answer.
  void slow(vfs::NodeId node, ErrorCode first);
  /// A device that hangs: notices neither deadline nor stop token while blocked.
  std::atomic<bool> deaf{false};
  std::atomic<std::int64_t> valid_ns{3600'000'000'000};
  std::atomic<std::size_t> slices_of{0};  ///< 0: one slice a read, else slices of so many bytes

  std::atomic<int> opens{0}, releases{0}, lookups{0}, reads{0}, retried{0}, cancelled{0}, waiting{0}, dir_reads{0}, timed_out{0};

  Result<vfs::Entry> lookup(const RequestContext& ctx, vfs::NodeId parent, std::string_view name) override;
  Result<vfs::Entry> getattr(const RequestContext& ctx, vfs::NodeId node, vfs::HandleId handle) override;
  Result<vfs::HandleId> open(const RequestContext& ctx, vfs::NodeId node, int flags) override;
  Result<cache::PageReply> read(const RequestContext& ctx, vfs::NodeId node, vfs::HandleId handle, cache::ByteRange range,
                                std::span<std::byte> scratch, bool retried) override;
  void release(vfs::HandleId handle) override;
  Result<vfs::HandleId> open_dir(const RequestContext& ctx, vfs::NodeId node) override;
  Result<void> read_dir(const RequestContext& ctx, vfs::NodeId node, vfs::HandleId handle, std::uint64_t cookie,
                        const std::function<bool(const vfs::DirEntry&)>& visit) override;
  void release_dir(vfs::HandleId handle) override;
  vfs::StatFs statfs() override { return {1ull << 40, 1ull << 39, 1'000'000}; }
  Result<std::string> get_xattr(const RequestContext& ctx, vfs::NodeId node, std::string_view name) override;
  Result<std::vector<std::string>> list_xattr(const RequestContext& ctx, vfs::NodeId node) override;
  void set_kernel_cache(vfs::KernelCache* kernel) override;

  Result<catalog::Entry> resolve(const RequestContext& ctx, std::string_view path) override;
  cache::ObjectRef object_ref(const catalog::File& file) const override;
  std::shared_ptr<cache::Source> source() const override { return nullptr; }
  catalog::View& view() override;
  std::string path_of(vfs::NodeId node) override { return "node " + std::to_string(node); }
  std::uint64_t open_handles() const override { return static_cast<std::uint64_t>(opens - releases); }

 private:
  struct Node {
    vfs::NodeId id = 0;
    vfs::NodeId parent = 0;
    bool dir = false;
    bool stale = false;
    std::uint64_t ino = 0;
    std::shared_ptr<const std::string> content;
    std::map<std::string, vfs::NodeId> children;
  };
  enum class Wait : std::uint8_t { kBlocked, kSlow };
  struct Waiting {
    Wait how;
    ErrorCode first;
  };
  vfs::NodeId add(vfs::NodeId parent, const std::string& name, Node node);
  Result<Node*> find(vfs::NodeId id);
  vfs::Entry entry_of(const Node& node) const;
  Result<void> wait_for(const RequestContext& ctx, vfs::NodeId node);

  mutable Mutex mutex_{LockRank::kVfs, "fake vfs"};
  std::map<vfs::NodeId, Node> nodes_;
  std::map<vfs::HandleId, vfs::NodeId> handles_;
  std::map<vfs::NodeId, Waiting> waits_;
  vfs::KernelCache* kernel_ = nullptr;
  std::uint64_t next_number_ = 16;
  std::uint64_t next_handle_ = 1;
};

}  // namespace thermo::fuse::testing
