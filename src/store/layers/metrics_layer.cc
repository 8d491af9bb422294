#include <array>
#include <chrono>

#include "store/layers/forwarding.h"
#include "store/layers/layers.h"

namespace thermo::store {
namespace {

constexpr const char* kRequests = "thermocline_store_requests_total";
constexpr const char* kRequestsHelp = "Requests to the store, by verb and result, retries included as one";

class MetricsLayer final : public AroundStore<MetricsLayer> {
 public:
  MetricsLayer(ObjectStorePtr inner_store, metrics::Registry& registry)
      : AroundStore(std::move(inner_store)),
        registry_(registry),
        sent_(registry.counter("thermocline_store_bytes_total", "Bytes of object bodies moved", {{"direction", "sent"}})),
        received_(
            registry.counter("thermocline_store_bytes_total", "Bytes of object bodies moved", {{"direction", "received"}})) {
    for (std::size_t i = 0; i < kVerbs; ++i) {
      const std::string verb(to_string(static_cast<Verb>(i)));
      ok_[i] = &registry.counter(kRequests, kRequestsHelp, {{"verb", verb}, {"result", "ok"}});
      seconds_[i] =
          &registry.histogram("thermocline_store_seconds", "Time of requests to the store, with retries", {{"verb", verb}});
    }
  }

  template <class Send>
  auto around(const RequestContext& ctx, const Call& call, Send&& send) {
    const auto verb = static_cast<std::size_t>(call.verb);
    const MonoTime begin = Clock::system().now();
    auto result = send(ctx);
    seconds_[verb]->observe_seconds(std::chrono::duration<double>(Clock::system().now() - begin).count());
    if (result) {
      ok_[verb]->add();
      sent_.add(call.sent);
    } else {
      // Errors are rare: their counter is looked up when one happens.
      registry_
          .counter(kRequests, kRequestsHelp,
                   {{"verb", std::string(to_string(call.verb))}, {"result", std::string(to_string(result.error().code()))}})
          .add();
    }
    return result;
  }

  Result<GetInfo> get_range(const RequestContext& ctx, const std::string& key, const std::string& if_match,
                            std::uint64_t object_size, ByteRange range, BodySink& sink) override {
    CountingSink counted(sink);
    auto result = AroundStore::get_range(ctx, key, if_match, object_size, range, counted);
    received_.add(counted.bytes());  // those of a failed request too: they crossed the network
    return result;
  }

 private:
  metrics::Registry& registry_;
  metrics::Counter& sent_;
  metrics::Counter& received_;
  std::array<metrics::Counter*, kVerbs> ok_{};
  std::array<metrics::Histogram*, kVerbs> seconds_{};
};

}  // namespace

ObjectStorePtr with_metrics(ObjectStorePtr inner, metrics::Registry& registry) {
  return std::make_shared<MetricsLayer>(std::move(inner), registry);
}

}  // namespace thermo::store
