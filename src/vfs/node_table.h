#pragma once
// Recently seen catalog entries by number, in front of the catalog's database.

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/mutex.h"
#include "catalog/catalog.h"
#include "vfs/vfs.h"

namespace thermo::vfs {

/// Generation of every folder: folders are never replaced.
inline constexpr std::uint32_t kFolderGeneration = 1;

[[nodiscard]] inline catalog::Number node_number(NodeId node) { return node >> kGenerationBits; }
[[nodiscard]] inline std::uint32_t node_generation(NodeId node) {
  return static_cast<std::uint32_t>(node & ((NodeId{1} << kGenerationBits) - 1));
}
[[nodiscard]] NodeId make_node(catalog::Number number, std::uint32_t generation);

/// Key of a file, prefix of a folder.
[[nodiscard]] const std::string& entry_key(const catalog::Entry& entry);
[[nodiscard]] catalog::Number entry_number(const catalog::Entry& entry);
/// Without regard to which folder is a mount's root.
[[nodiscard]] NodeId entry_node(const catalog::Entry& entry);

/// "a/b/c" -> {"a/b/", "c"}; "a/b/" -> {"a/", "b"}.
struct ParentAndName {
  std::string prefix;
  std::string name;
};
[[nodiscard]] ParentAndName split_key(const std::string& key);

/// Bounded, oldest use out first. Thread-safe: one short lock, nothing is called under it. It holds nothing that cannot be asked
/// of the catalog again, except suspicion, which is kept apart.
class NodeTable {
 public:
  struct Known {
    catalog::Entry entry;
    MonoTime expires;  ///< until when name and attributes may be believed
  };
  using KnownPtr = std::shared_ptr<const Known>;

  explicit NodeTable(std::size_t capacity) : capacity_(capacity) {}

  /// Remembers the newest known state of an entry. `confirmed`: the answer of a lookup by name, which ends any suspicion; without
  /// it only a newer generation does.
  void remember(KnownPtr known, bool confirmed);
  void forget_key(const std::string& key);

  struct Answer {
    KnownPtr known;
    std::optional<std::string> suspect_key;  ///< set: ask the catalog by this key's name, `known` is empty
  };
  [[nodiscard]] Answer find(catalog::Number number);
  [[nodiscard]] KnownPtr find_key(const std::string& key);

  /// The store disagreed with what is known of this file (412, 404): whoever uses it next must ask by name.
  void suspect(const catalog::File& file);

  [[nodiscard]] std::size_t size();

  /// Suspects are forgotten beyond this number; the cost is one more ESTALE for a reader.
  static constexpr std::size_t kMaxSuspects = 4096;

 private:
  struct Slot {
    catalog::Number number;
    std::uint64_t key_hash;
    KnownPtr known;
  };
  struct Suspect {
    std::uint32_t generation;
    std::string key;
  };
  using Slots = std::list<Slot>;
  void erase(Slots::iterator slot) REQUIRES(mutex_);

  const std::size_t capacity_;
  Mutex mutex_{LockRank::kVfs, "vfs nodes"};
  Slots slots_ GUARDED_BY(mutex_);  ///< newest use first
  std::unordered_map<catalog::Number, Slots::iterator> by_number_ GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, catalog::Number> by_key_ GUARDED_BY(mutex_);
  std::unordered_map<catalog::Number, Suspect> suspects_ GUARDED_BY(mutex_);
};

}  // namespace thermo::vfs
