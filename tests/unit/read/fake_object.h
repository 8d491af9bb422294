#pragma once
// A cache object over a vector: pages are resident or not, every call is recorded. Prefetched pages become resident on arrive().

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cache/cache.h"

namespace thermo::test {

class FakeObject final : public cache::Object {
 public:
  struct Asked {
    cache::ByteRange range;
    Priority priority;
    bool has_deadline;
  };

  FakeObject(cache::ObjectRef ref, std::vector<std::byte> bytes) : ref_(std::move(ref)), bytes_(std::move(bytes)) {
    resident_.resize(static_cast<std::size_t>((bytes_.size() + cache::kPageBytes - 1) / cache::kPageBytes));
    asked_pages_ = resident_;
  }

  const cache::ObjectRef& ref() const override { return ref_; }

  Result<cache::PageReply> read(const RequestContext& ctx, cache::ByteRange range, std::span<std::byte>) override {
    std::lock_guard lock(mutex_);
    log.push_back(ctx.may_wait ? "read" : "probe");
    if (!here(range)) {
      if (!ctx.may_wait) return fail(ErrorCode::kWouldWaitStore);
      if (failure) return fail(*failure, "the fake store failed");
      mark(resident_, range);
      demand_pages += unasked(range);
      mark(asked_pages_, range);
    } else if (on_device && !ctx.may_wait) {
      return fail(ErrorCode::kWouldWaitDevice);
    }
    cache::PageReply reply;
    const auto first = static_cast<std::size_t>(range.offset);
    const auto middle = first + static_cast<std::size_t>(std::min<std::uint64_t>(range.length, 5));
    const auto last = static_cast<std::size_t>(range.end());
    const std::span<const std::byte> all(bytes_);
    // Two slices, the first tiny: whoever reads a reply must cope with any cut.
    reply.slices.push_back({nullptr, all.subspan(first, middle - first)});
    if (last > middle) reply.slices.push_back({nullptr, all.subspan(middle, last - middle)});
    return reply;
  }

  std::uint64_t prefetch(const RequestContext& ctx, cache::ByteRange range) override {
    std::lock_guard lock(mutex_);
    log.push_back("prefetch");
    asked.push_back({range, ctx.priority, ctx.deadline != MonoTime::max()});
    range.length = std::min(range.length, admit);
    if (range.length > 0) mark(asked_pages_, range);
    return range.length;
  }

  void wait_for_room(const RequestContext&, std::uint64_t bytes) override { waited_for += bytes; }
  void cancel_prefetch() override { ++cancels; }

  cache::Residency residency() const override {
    cache::Residency r{ref_.size, 0, 0};
    for (std::size_t i = 0; i < resident_.size(); ++i) {
      if (resident_[i]) r.resident += std::min<std::uint64_t>(cache::kPageBytes, ref_.size - i * cache::kPageBytes);
    }
    return r;
  }

  /// Everything asked for so far has come.
  void arrive() {
    std::lock_guard lock(mutex_);
    resident_ = asked_pages_;
  }

  std::vector<Asked> asked;
  std::vector<std::string> log;
  std::uint64_t admit = UINT64_MAX;
  std::uint64_t demand_pages = 0;  ///< pages that only a read asked for
  int cancels = 0;
  std::uint64_t waited_for = 0;  ///< bytes of room
  bool on_device = false;
  std::optional<ErrorCode> failure;

 private:
  static std::pair<std::size_t, std::size_t> pages(cache::ByteRange r) {
    return {static_cast<std::size_t>(r.offset / cache::kPageBytes),
            static_cast<std::size_t>((r.end() + cache::kPageBytes - 1) / cache::kPageBytes)};
  }
  bool here(cache::ByteRange r) const {
    const auto [first, last] = pages(r);
    for (std::size_t i = first; i < last; ++i)
      if (!resident_[i]) return false;
    return true;
  }
  std::uint64_t unasked(cache::ByteRange r) const {
    const auto [first, last] = pages(r);
    std::uint64_t n = 0;
    for (std::size_t i = first; i < last; ++i) n += asked_pages_[i] ? 0 : 1;
    return n;
  }
  static void mark(std::vector<bool>& set, cache::ByteRange r) {
    const auto [first, last] = pages(r);
    for (std::size_t i = first; i < last; ++i) set[i] = true;
  }

  cache::ObjectRef ref_;
  std::vector<std::byte> bytes_;
  std::vector<bool> resident_, asked_pages_;
  std::mutex mutex_;
};

}  // namespace thermo::test
