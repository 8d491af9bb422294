#pragma once
// Who has to go when the tier is full: a plain state machine without locks, time or I/O. It owns the table of resident objects,
// about 100 bytes each, so that order and charge are one look-up.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cache/cache.h"

namespace thermo::cache {

/// Not thread-safe.
class Replacement {
 public:
  virtual ~Replacement() = default;
  /// A new resident object. `order` is larger than all before it, or comes from the records (ascending) at start.
  virtual void on_insert(const VersionId& id, std::uint64_t bytes, std::uint64_t order) = 0;
  /// Somebody uses it.
  virtual void on_hit(const VersionId& id) = 0;
  virtual void on_resize(const VersionId& id, std::uint64_t bytes) = 0;
  virtual void on_remove(const VersionId& id) = 0;

  struct Item {
    std::uint64_t bytes;
    std::uint64_t order;
  };
  [[nodiscard]] virtual std::optional<Item> find(const VersionId& id) const = 0;
  [[nodiscard]] virtual std::size_t count() const = 0;
  /// The objects that should go first and together hold at least `bytes` (fewer when there are not enough), without those `keep`
  /// says yes to. Changes nothing.
  [[nodiscard]] virtual std::vector<VersionId> victims(std::uint64_t bytes,
                                                       const std::function<bool(const VersionId&)>& keep) const = 0;
  /// Every object, first victim first.
  [[nodiscard]] virtual std::vector<VersionId> all() const = 0;
};

/// Oldest insertion first; hits change nothing.
[[nodiscard]] std::unique_ptr<Replacement> make_fifo();

}  // namespace thermo::cache
