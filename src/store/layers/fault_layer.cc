#include <optional>

#include "base/mutex.h"
#include "store/layers/forwarding.h"
#include "store/layers/layers.h"

namespace thermo::store {
namespace {

/// Drops everything from `keep` on, as a connection that is cut does, but tells nobody.
/// Inverts one bit of the byte at `flip`.
class DamagingSink final : public BodySink {
 public:
  DamagingSink(BodySink& inner, std::optional<std::uint64_t> keep, std::optional<std::uint64_t> flip)
      : inner_(inner), keep_(keep), flip_(flip) {}
  [[nodiscard]] Result<void> write(std::span<const std::byte> bytes) override {
    const std::uint64_t begin = at_;
    at_ += bytes.size();
    if (keep_ && begin >= *keep_) return {};
    if (keep_ && at_ > *keep_) bytes = bytes.first(static_cast<std::size_t>(*keep_ - begin));
    if (!flip_ || *flip_ < begin || *flip_ >= begin + bytes.size()) return inner_.write(bytes);
    std::vector<std::byte> damaged(bytes.begin(), bytes.end());
    damaged[static_cast<std::size_t>(*flip_ - begin)] ^= std::byte{0x10};
    return inner_.write(damaged);
  }

 private:
  BodySink& inner_;
  const std::optional<std::uint64_t> keep_;
  const std::optional<std::uint64_t> flip_;
  std::uint64_t at_ = 0;
};

class FaultLayer final : public AroundStore<FaultLayer> {
 public:
  FaultLayer(ObjectStorePtr inner_store, const FaultOptions& options, Rng rng)
      : AroundStore(std::move(inner_store)), options_(options), rng_(rng) {}

  template <class Send>
  auto around(const RequestContext& ctx, const Call& call, Send&& send) -> decltype(send(ctx)) {
    if (chance(options_.throttle)) return fail(Error(ErrorCode::kThrottled, "SlowDown (made by the fault layer)").with_http(503));
    if (chance(options_.unavailable)) return fail(ErrorCode::kUnavailable, "connection reset (made by the fault layer)");
    auto result = send(ctx);
    if (call.verb == Verb::kPut && result && chance(options_.error_after_put)) {
      return fail(ErrorCode::kUnavailable, "the answer was lost (made by the fault layer)");
    }
    return result;
  }

  Result<ObjectInfo> head(const RequestContext& ctx, const std::string& key) override {
    auto info = AroundStore::head(ctx, key);
    if (info && chance(options_.wrong_etag)) info->etag = wrong(info->etag);
    return info;
  }

  Result<GetInfo> get_range(const RequestContext& ctx, const std::string& key, const std::string& if_match,
                            std::uint64_t object_size, ByteRange range, BodySink& sink) override {
    std::optional<std::uint64_t> keep;
    std::optional<std::uint64_t> flip;
    if (range.length > 0 && chance(options_.short_body)) keep = below(range.length);
    if (range.length > 0 && chance(options_.flip_byte)) flip = below(range.length);
    DamagingSink damaging(sink, keep, flip);
    auto info = AroundStore::get_range(ctx, key, if_match, object_size, range, damaging);
    if (info && chance(options_.wrong_etag)) info->etag = wrong(info->etag);
    return info;
  }

 private:
  [[nodiscard]] static std::string wrong(const std::string& etag) {
    return "\"not-" + etag.substr(etag.starts_with('"') ? 1 : 0);
  }
  [[nodiscard]] bool chance(double probability) {
    if (probability <= 0) return false;
    MutexLock lock(mutex_);
    return rng_.chance(probability);
  }
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) {
    MutexLock lock(mutex_);
    return rng_.below(bound);
  }

  const FaultOptions options_;
  Mutex mutex_{LockRank::kStore, "fault layer"};
  Rng rng_ GUARDED_BY(mutex_);
};

}  // namespace

ObjectStorePtr with_fault(ObjectStorePtr inner, const FaultOptions& options, Rng rng) {
  return std::make_shared<FaultLayer>(std::move(inner), options, rng);
}

}  // namespace thermo::store
