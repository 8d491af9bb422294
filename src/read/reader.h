#pragma once
// One open file's way to its bytes: decides what to fetch ahead (pure state machine in prefetch_window.h), asks the cache for the
// rest.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "cache/cache.h"

namespace thermo::read {

struct Options {
  std::uint64_t first_window =
      (1u << 20) + (128u << 10);           ///< the kernel's read-ahead of a 1 MiB read never needs a second request
  std::uint64_t max_window = 256u << 20;   ///< per handle; the memory budget bounds it further
  std::uint64_t forward_seek = 16u << 20;  ///< gap that still counts as reading in order
  std::uint64_t backward_seek = 1u << 20;
  std::uint64_t tail_bytes = 1u << 20;  ///< of Parquet and ORC files, fetched at open
};

/// Thread-safe: the kernel reads ahead on one handle from several threads, out of order.
class Reader {
 public:
  virtual ~Reader() = default;
  /// Bytes of [offset, offset + length), clipped to the end of the object: never short before it. `scratch` as in
  /// cache::Object::read. ctx.may_wait false: kWouldWaitDevice / kWouldWaitStore; the window has been told in any case only once
  /// (call again with `retried` true).
  [[nodiscard]] virtual Result<cache::PageReply> read(const RequestContext& ctx, cache::ByteRange range,
                                                      std::span<std::byte> scratch, bool retried) = 0;
  [[nodiscard]] virtual const cache::ObjectRef& ref() const = 0;
};

/// `name` decides whether the tail is fetched at open (".parquet", ".orc"). Never waits.
[[nodiscard]] std::unique_ptr<Reader> open_reader(const RequestContext& ctx, cache::ObjectPtr object, std::string_view name,
                                                  const Options& options, MemoryBudget& memory);

}  // namespace thermo::read
