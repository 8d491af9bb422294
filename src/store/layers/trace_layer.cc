#include <chrono>

#include "base/log.h"
#include "store/layers/forwarding.h"
#include "store/layers/layers.h"

namespace thermo::store {
namespace {

// Keys hold any byte; a log line is one line.
std::string printable(std::string_view key) {
  std::string text;
  for (const char c : key) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else text += c;
  }
  return text;
}

class TraceLayer final : public AroundStore<TraceLayer> {
 public:
  using AroundStore::AroundStore;

  template <class Received, class Send>
  auto traced(const RequestContext& ctx, const Call& call, Received&& received, Send&& send) {
    if (!log::channel_enabled(log::Channel::kS3)) return send(ctx);
    const MonoTime begin = Clock::system().now();
    auto result = send(ctx);
    const double ms = std::chrono::duration<double, std::milli>(Clock::system().now() - begin).count();
    log::trace(log::Channel::kS3, "id={} op={} store={} path='{}' range={}+{} bytes={} ms={:.3f} result={}", ctx.request_id,
               to_string(call.verb), id(), printable(call.key), call.range.offset, call.range.length, call.sent + received(), ms,
               result ? "ok" : printable(result.error().describe()));
    return result;
  }

  template <class Send>
  auto around(const RequestContext& ctx, const Call& call, Send&& send) {
    return traced(ctx, call, [] { return std::uint64_t{0}; }, send);
  }

  Result<GetInfo> get_range(const RequestContext& ctx, const std::string& key, const std::string& if_match,
                            std::uint64_t object_size, ByteRange range, BodySink& sink) override {
    CountingSink counted(sink);
    return traced(
        ctx, {Verb::kGet, key, 0, range}, [&] { return counted.bytes(); },
        [&](const RequestContext& c) { return inner().get_range(c, key, if_match, object_size, range, counted); });
  }
};

}  // namespace

ObjectStorePtr with_trace(ObjectStorePtr inner) { return std::make_shared<TraceLayer>(std::move(inner)); }

}  // namespace thermo::store
