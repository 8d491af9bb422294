#pragma once
// The POSIX view of one mount over catalog, reader and cache: names, attributes, handles. Front ends translate their protocol to
// this.
//
// Every call takes the caller's RequestContext; with ctx.may_wait false it answers kWouldWaitDevice / kWouldWaitStore instead of
// waiting, and may then be called again with may_wait true from another thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/cache.h"
#include "catalog/catalog.h"
#include "read/reader.h"

namespace thermo::vfs {

/// (file number << 20) | generation. 1 is the mount's root.
using NodeId = std::uint64_t;
inline constexpr NodeId kRootNode = 1;
inline constexpr int kGenerationBits = 20;

/// A file handle as the kernel holds it. A handle that this process does not know (opened before a restart) is opened again from
/// its node.
using HandleId = std::uint64_t;

struct Attr {
  std::uint64_t ino = 0;
  std::uint32_t mode = 0;  ///< type and permission bits
  std::uint32_t nlink = 1;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t size = 0;
  std::uint64_t blocks = 0;  ///< of 512 bytes
  WallNanos mtime = 0;
};

struct Entry {
  NodeId node = 0;  ///< 0: the name does not exist (a negative answer, believed for `valid`)
  Attr attr;
  Nanos valid{0};  ///< how long the kernel may keep name and attributes
};

struct DirEntry {
  std::string_view name;
  std::uint64_t cookie = 0;  ///< position after this entry: readdir goes on here
  Entry entry;
};

struct StatFs {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t files = 0;
};

/// The kernel's caches, as vfs may invalidate them. Implemented by the FUSE session; calls return at once.
class KernelCache {
 public:
  virtual ~KernelCache() = default;
  virtual void invalidate_entry(NodeId parent, const std::string& name) = 0;
};

struct Options {
  std::string root_prefix;  ///< empty or ends in '/'
  std::uint32_t uid = 0;    ///< owner shown for every file
  std::uint32_t gid = 0;
  std::uint32_t file_mode = 0644;  ///< permission bits
  std::uint32_t dir_mode = 0755;
  std::string store_name;    ///< for the xattr user.thermo.store, e.g. "s3://bucket/prefix"
  std::string admin_socket;  ///< for the xattr user.thermo.admin: how subcommands find the daemon
  read::Options read;
  const Clock* clock = &Clock::system();
  metrics::Registry* metrics = nullptr;  ///< required
};

/// Thread-safe.
class Vfs {
 public:
  virtual ~Vfs() = default;

  [[nodiscard]] virtual Result<Entry> lookup(const RequestContext& ctx, NodeId parent, std::string_view name) = 0;
  /// By path (handle 0): kStale for an old generation. By handle: the attributes of the handle's version.
  [[nodiscard]] virtual Result<Entry> getattr(const RequestContext& ctx, NodeId node, HandleId handle) = 0;

  /// Opens a file for reading. kStale for an old generation (the kernel looks the name up again), kIsDirectory, kReadOnly when
  /// `flags` (open(2)) want to write.
  [[nodiscard]] virtual Result<HandleId> open(const RequestContext& ctx, NodeId node, int flags) = 0;
  /// Never short before the end of the file. kStale when the version is gone from the store and not in the cache.
  [[nodiscard]] virtual Result<cache::PageReply> read(const RequestContext& ctx, NodeId node, HandleId handle,
                                                      cache::ByteRange range, std::span<std::byte> scratch, bool retried) = 0;
  virtual void release(HandleId handle) = 0;

  [[nodiscard]] virtual Result<HandleId> open_dir(const RequestContext& ctx, NodeId node) = 0;
  /// Calls `visit` for entries after position `cookie` (0 = start; "." and ".." first) until it returns false. seekdir to any
  /// cookie that was handed out by this handle works.
  [[nodiscard]] virtual Result<void> read_dir(const RequestContext& ctx, NodeId node, HandleId handle, std::uint64_t cookie,
                                              const std::function<bool(const DirEntry&)>& visit) = 0;
  virtual void release_dir(HandleId handle) = 0;

  [[nodiscard]] virtual StatFs statfs() = 0;
  /// user.thermo.etag, .residency, .store, .version; on folders .store and .admin, .skipped. kNoData for others.
  [[nodiscard]] virtual Result<std::string> get_xattr(const RequestContext& ctx, NodeId node, std::string_view name) = 0;
  [[nodiscard]] virtual Result<std::vector<std::string>> list_xattr(const RequestContext& ctx, NodeId node) = 0;

  virtual void set_kernel_cache(KernelCache* kernel) = 0;  ///< nullptr to stop; returns after a running call ended

  /// For admin commands: path relative to the mount's root ("" = root) -> catalog entry, asking the store where needed.
  [[nodiscard]] virtual Result<catalog::Entry> resolve(const RequestContext& ctx, std::string_view path) = 0;
  /// The cache's name for a file of this mount, and the way to its bytes.
  [[nodiscard]] virtual cache::ObjectRef object_ref(const catalog::File& file) const = 0;
  [[nodiscard]] virtual std::shared_ptr<cache::Source> source() const = 0;
  [[nodiscard]] virtual catalog::View& view() = 0;
  /// For log lines: the path of a node that is known just now, relative to the mount's root ("" = root), else "?".
  [[nodiscard]] virtual std::string path_of(NodeId node) = 0;
  /// Open handles now.
  [[nodiscard]] virtual std::uint64_t open_handles() const = 0;
};

[[nodiscard]] std::unique_ptr<Vfs> make_vfs(std::shared_ptr<catalog::View> view, cache::Cache& cache, MemoryBudget& memory,
                                            const Options& options);

}  // namespace thermo::vfs
