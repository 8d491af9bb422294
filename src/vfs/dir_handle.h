#pragma once
// One open folder: positions that stay good for readdir, telldir and seekdir.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "catalog/catalog.h"
#include "vfs/node_table.h"

namespace thermo::vfs {

/// A listing is cut into chunks of kChunk names, numbered from the start; of each chunk seen the name before it is kept (a name
/// per kChunk entries), of the latest one everything. Going on after a position is by name, so entries that come or go meanwhile
/// move nothing that follows; only going back to a chunk that is no longer held counts entries from its first name. Thread-safe;
/// the catalog is asked without a lock.
class DirHandle {
 public:
  static constexpr std::size_t kChunk = 256;

  DirHandle(NodeId of_node, std::string of_prefix) : node(of_node), prefix(std::move(of_prefix)) {}

  struct Item {
    std::string name;
    NodeTable::KnownPtr known;
  };
  struct Chunk {
    std::uint64_t index = 0;
    std::vector<Item> items;
    bool ended = false;  ///< nothing follows
  };
  using ChunkPtr = std::shared_ptr<const Chunk>;

  /// The entry at `ordinal` (0 = first) is in the answer at ordinal % kChunk, or the folder ends before it. What is listed is
  /// remembered in `nodes`. An error only when not a single entry from there on is known.
  [[nodiscard]] Result<ChunkPtr> chunk_at(const RequestContext& ctx, catalog::View& view, NodeTable& nodes, const Clock& clock,
                                          std::uint64_t ordinal);
  /// Forgets all positions: the folder is listed anew.
  void rewind();

  const NodeId node;
  const std::string prefix;

 private:
  struct Start {
    std::uint64_t index;
    std::string after;
    std::vector<Item> items;
    catalog::Told told;
  };
  [[nodiscard]] ChunkPtr held(std::uint64_t index, std::size_t offset);
  [[nodiscard]] Start start_for(std::uint64_t index);

  Mutex mutex_{LockRank::kVfs, "vfs folder handle"};
  std::vector<std::string> before_ GUARDED_BY(mutex_){std::string()};  ///< before_[k]: last name of chunk k - 1
  ChunkPtr chunk_ GUARDED_BY(mutex_);
  catalog::Told told_ GUARDED_BY(mutex_);  ///< the listing that is being handed out: its parts are of one age
};

/// `valid` from now on, without overflow.
[[nodiscard]] MonoTime expiry(const Clock& clock, Nanos valid);

}  // namespace thermo::vfs
