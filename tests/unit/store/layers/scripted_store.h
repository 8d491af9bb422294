#pragma once
// A store that answers as a script says: for the layers' tests.

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "store/layers/forwarding.h"

namespace thermo::store::testing {

/// What happens to one attempt. Without an error the call goes on to the inner store.
struct Step {
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  Step() = default;
  Step(Error failure, std::uint64_t deliver = 0,
       bool takes_effect = false)  // NOLINT(google-explicit-constructor): reads as a list
      : fails(true), error(std::move(failure)), body(deliver), after(takes_effect) {}
  Step(std::nullopt_t, std::uint64_t deliver) : body(deliver) {}

  bool fails = false;
  Error error{ErrorCode::kInternal};
  std::uint64_t body = kAll;  ///< of a GET: deliver at most so many bytes, then the error (or a false success)
  bool after = false;         ///< of a write: it takes effect before the error
};

class ScriptedStore final : public AroundStore<ScriptedStore> {
 public:
  using AroundStore::AroundStore;

  template <class Send>
  auto around(const RequestContext& ctx, const Call& call, Send&& send) -> decltype(send(ctx)) {
    const Step step = next(ctx, call);
    if (!step.fails) return send(ctx);
    if (step.after) (void)send(ctx);
    return fail(step.error);
  }

  Result<GetInfo> get_range(const RequestContext& ctx, const std::string& key, const std::string& if_match,
                            std::uint64_t object_size, ByteRange range, BodySink& sink) override {
    const Step step = next(ctx, {Verb::kGet, key, 0, range});
    versions.push_back(if_match);
    ranges.push_back(range);
    class Part final : public BodySink {
     public:
      Part(BodySink& to, std::uint64_t limit) : to_(to), left_(limit) {}
      [[nodiscard]] Result<void> write(std::span<const std::byte> bytes) override {
        const auto part = bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size())));
        left_ -= part.size();
        return part.empty() ? Result<void>{} : to_.write(part);
      }

     private:
      BodySink& to_;
      std::uint64_t left_;
    } part(sink, step.body);
    auto result = inner().get_range(ctx, key, if_match, object_size, range, part);
    if (step.fails) return fail(step.error);
    return result;
  }

  std::deque<Step> script;            ///< used up from the front; then all goes well
  std::vector<MonoTime> deadlines;    ///< of every attempt
  std::vector<ByteRange> ranges;      ///< of every GET
  std::vector<std::string> versions;  ///< If-Match of every GET
  std::function<void(const Call&)> on_call;

 private:
  Step next(const RequestContext& ctx, const Call& call) {
    if (on_call) on_call(call);
    deadlines.push_back(ctx.deadline);
    if (script.empty()) return {};
    Step step = script.front();
    script.pop_front();
    return step;
  }
};

inline ErrorCode code_of(const auto& result) { return result ? ErrorCode::kInternal : result.error().code(); }

}  // namespace thermo::store::testing
