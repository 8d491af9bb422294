#include "store/layers/concurrency_limit.h"
#include "store/layers/forwarding.h"
#include "store/layers/layers.h"

namespace thermo::store {
namespace {

class LimitLayer final : public AroundStore<LimitLayer> {
 public:
  LimitLayer(ObjectStorePtr inner_store, const LimitOptions& options, const Clock& clock, metrics::Registry& registry)
      : AroundStore(std::move(inner_store)), limit_(options, clock, registry, id()) {}

  template <class Send>
  auto around(const RequestContext& ctx, const Call&, Send&& send) -> decltype(send(ctx)) {
    TRY(limit_.acquire(ctx));
    Slot slot{limit_};
    auto result = send(ctx);
    if (result) slot.outcome = ConcurrencyLimit::Outcome::kSuccess;
    else if (result.error().retry_class() == RetryClass::kThrottle) slot.outcome = ConcurrencyLimit::Outcome::kThrottled;
    return result;
  }

 private:
  // Gives the slot back on every way out.
  struct Slot {
    ConcurrencyLimit& limit;
    ConcurrencyLimit::Outcome outcome = ConcurrencyLimit::Outcome::kOther;
    ~Slot() { limit.release(outcome); }
  };
  ConcurrencyLimit limit_;
};

}  // namespace

ObjectStorePtr with_limit(ObjectStorePtr inner, const LimitOptions& options, const Clock& clock, metrics::Registry& registry) {
  return std::make_shared<LimitLayer>(std::move(inner), options, clock, registry);
}

}  // namespace thermo::store
