#pragma once
// An open object version: what a reader holds.

#include <atomic>
#include <memory>

#include "cache/cache.h"
#include "cache/filler.h"

namespace thermo::cache {

/// What handles share; lives as long as the last of them.
struct Core {
  explicit Core(const Options& o) : options(o), metrics(*o.metrics), tier(options, metrics, table), filler(options, tier) {}
  const Options options;
  CacheMetrics metrics;
  EntryTable table;
  Tier tier;
  Filler filler;
};

/// Thread-safe.
class Handle final : public Object, public std::enable_shared_from_this<Handle> {
 public:
  Handle(std::shared_ptr<Core> core, EntryPtr entry, std::shared_ptr<Source> source, std::uint64_t id);
  ~Handle() override;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  [[nodiscard]] const ObjectRef& ref() const override { return entry_->ref; }
  [[nodiscard]] Result<PageReply> read(const RequestContext& ctx, ByteRange range, std::span<std::byte> scratch) override;
  std::uint64_t prefetch(const RequestContext& ctx, ByteRange range) override;
  void wait_for_room(const RequestContext& ctx, std::uint64_t bytes) override { core_->filler.wait_for_room(ctx, bytes); }
  void cancel_prefetch() override;
  [[nodiscard]] Residency residency() const override;

 private:
  class Gather;
  [[nodiscard]] Result<bool> read_resident(const RequestContext& ctx, ByteRange range, std::span<std::byte> scratch);

  const std::shared_ptr<Core> core_;
  EntryPtr entry_;
  const std::shared_ptr<Source> source_;
  const std::uint64_t id_;
  std::atomic<bool> prefetched_{false};
};

/// Residency of an entry as it is now.
[[nodiscard]] Residency residency_of(Entry& entry);

}  // namespace thermo::cache
