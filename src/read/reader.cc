#include "read/reader.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/mutex.h"
#include "read/footer.h"
#include "read/prefetch_window.h"

namespace thermo::read {
namespace {

using cache::ByteRange;

// A footer that claims more than this is fetched as it is read: no writer makes such footers, broken files claim them.
constexpr std::uint64_t kMaxFooterPrefetch = 64u << 20;

/// Prefetches outlive the request that caused them: they keep its identity, not its deadline or stop token.
RequestContext detached(const RequestContext& ctx, Priority priority) {
  RequestContext copy;
  copy.priority = priority;
  copy.request_id = ctx.request_id;
  copy.principal = ctx.principal;
  return copy;
}

class WindowReader final : public Reader {
 public:
  WindowReader(const RequestContext& ctx, cache::ObjectPtr object, std::string_view name, const Options& options,
               MemoryBudget& memory)
      : object_(std::move(object)), size_(object_->ref().size), options_(options), memory_(memory), window_(size_, options) {
    if (!has_footer(name) || size_ <= options_.tail_bytes) return;
    wants_trailer_.store(true, std::memory_order_relaxed);
    (void)object_->prefetch(detached(ctx, Priority::kPrefetch), {size_ - options_.tail_bytes, options_.tail_bytes});
  }

  ~WindowReader() override { object_->cancel_prefetch(); }

  Result<cache::PageReply> read(const RequestContext& ctx, ByteRange range, std::span<std::byte> scratch, bool retried) override {
    if (range.offset >= size_) return cache::PageReply{};
    range.length = std::min(range.length, size_ - range.offset);
    if (range.length == 0) return cache::PageReply{};

    if (retried && ctx.may_wait) fetch_when_there_is_room(ctx, range);
    auto reply = retried ? object_->read(ctx, range, scratch) : first_read(ctx, range, scratch);
    if (reply && range.end() == size_ && wants_trailer_.load(std::memory_order_relaxed)) learn_footer(ctx, *reply);
    return reply;
  }

  const cache::ObjectRef& ref() const override { return object_->ref(); }

 private:
  Result<cache::PageReply> first_read(const RequestContext& ctx, ByteRange range, std::span<std::byte> scratch) {
    // Asked without waiting first: only so do we know whether the reader outran its window. What it misses is requested together
    // with what comes after it, before anybody waits for it.
    auto reply = object_->read(ctx.waiting(false), range, scratch);
    const bool stalled = !reply && reply.error().code() == ErrorCode::kWouldWaitStore;
    const std::uint64_t available = memory_.available(Priority::kPrefetch);
    ByteRange ask;
    {
      MutexLock lock(mutex_);
      ask = window_.on_read(range, stalled, available);
    }
    if (ask.length > 0) prefetch(ctx, range, stalled, ask);
    const bool would_wait = stalled || (!reply && reply.error().code() == ErrorCode::kWouldWaitDevice);
    if (!would_wait || !ctx.may_wait) return reply;
    fetch_when_there_is_room(ctx, range);
    return object_->read(ctx, range, scratch);
  }

  /// A store that is faster than the disk fills the memory with pages on their way to it. Then a reader in order goes at the
  /// disk's pace, in whole GETs.
  void fetch_when_there_is_room(const RequestContext& ctx, ByteRange range) {
    ByteRange get = starved(range, false);
    if (get.length == 0) return;
    object_->wait_for_room(ctx, get.length);
    get = starved(range, true);  // another read of the same stream may have asked meanwhile
    if (get.length > 0) prefetch(ctx, range, true, get);
  }

  [[nodiscard]] ByteRange starved(ByteRange range, bool taken) {
    MutexLock lock(mutex_);
    return window_.starved(range, taken);
  }

  void prefetch(const RequestContext& ctx, ByteRange read, bool stalled, ByteRange ask) {
    // The GET that holds the read itself is as urgent as the read; later ones are not.
    std::uint64_t urgent_end = ask.offset;
    if (stalled && ask.offset < read.end()) {
      urgent_end = std::min(ask.end(), (read.end() + cache::kMaxFillBytes - 1) / cache::kMaxFillBytes * cache::kMaxFillBytes);
    }
    std::uint64_t admitted = 0;
    if (urgent_end > ask.offset) {
      admitted = object_->prefetch(detached(ctx, ctx.priority), {ask.offset, urgent_end - ask.offset});
    }
    if (ask.offset + admitted >= urgent_end && ask.end() > urgent_end) {
      admitted += object_->prefetch(detached(ctx, Priority::kPrefetch), {urgent_end, ask.end() - urgent_end});
    }
    if (admitted < ask.length) {
      MutexLock lock(mutex_);
      window_.on_dropped(ask, admitted);
    }
  }

  /// A reader of Parquet reads the trailer first; the footer that it names comes next.
  void learn_footer(const RequestContext& ctx, const cache::PageReply& reply) {
    std::array<std::byte, kParquetTrailerBytes> trailer;
    std::size_t missing = trailer.size();
    for (auto slice = reply.slices.rbegin(); slice != reply.slices.rend() && missing > 0; ++slice) {
      const std::size_t n = std::min(missing, slice->bytes.size());
      std::memcpy(trailer.data() + missing - n, slice->bytes.data() + slice->bytes.size() - n, n);
      missing -= n;
    }
    if (missing > 0 || !wants_trailer_.exchange(false, std::memory_order_relaxed)) return;
    const auto length = parquet_footer_length(trailer);
    if (!length || *length + kParquetTrailerBytes > size_ || *length > kMaxFooterPrefetch) return;
    const std::uint64_t begin = size_ - kParquetTrailerBytes - *length;
    const std::uint64_t tail = size_ - options_.tail_bytes;
    if (begin < tail) (void)object_->prefetch(detached(ctx, ctx.priority), {begin, tail - begin});
  }

  const cache::ObjectPtr object_;
  const std::uint64_t size_;
  const Options options_;
  MemoryBudget& memory_;
  std::atomic<bool> wants_trailer_{false};
  Mutex mutex_{LockRank::kReader, "prefetch window"};
  PrefetchWindow window_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Reader> open_reader(const RequestContext& ctx, cache::ObjectPtr object, std::string_view name,
                                    const Options& options, MemoryBudget& memory) {
  return std::make_unique<WindowReader>(ctx, std::move(object), name, options, memory);
}

}  // namespace thermo::read
