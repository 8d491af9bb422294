#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "base/mutex.h"
#include "store/layers/forwarding.h"
#include "store/layers/layers.h"
#include "store/layers/retry_schedule.h"

namespace thermo::store {
namespace {

constexpr Nanos kSleepStep = std::chrono::milliseconds(20);   // how soon a stop is noticed
constexpr std::uint64_t kProgress = std::uint64_t{64} << 10;  // an attempt that moved less counts as failed: a trickle must end

// Sleeps by `clock` in short steps of real time, so that the stop token and a clock that jumps are noticed.
Result<void> sleep_until(const Clock& clock, const RequestContext& ctx, MonoTime until) {
  while (true) {
    TRY(ctx.check(clock));
    const MonoTime now = clock.now();
    if (now >= until) return {};
    std::this_thread::sleep_for(std::min<Nanos>(until - now, kSleepStep));
  }
}

// The request may have taken effect though no answer says so.
bool answer_lost(ErrorCode code) {
  return code == ErrorCode::kUnavailable || code == ErrorCode::kTimeout || code == ErrorCode::kCorrupt;
}

class RetryLayer final : public AroundStore<RetryLayer> {
 public:
  RetryLayer(ObjectStorePtr inner_store, const RetryOptions& options, const Clock& clock, Rng rng)
      : AroundStore(std::move(inner_store)),
        options_(options),
        clock_(clock),
        rng_(rng),
        budget_(options.budget_burst, options.budget_ratio) {}

  template <class Send>
  auto around(const RequestContext& ctx, const Call& call, Send&& send) {
    RetrySchedule schedule(options_);
    while (true) {
      auto result = send(attempt(schedule, ctx));
      if (result) {
        succeeded();
        return result;
      }
      Error error = result.error();
      if (!call.repeatable && answer_lost(error.code())) {
        result = fail(lost(error));
        return result;
      }
      if (auto end = pause(schedule, ctx, error, false)) {
        result = fail(*std::move(end));
        return result;
      }
    }
  }

  Result<GetInfo> get_range(const RequestContext& ctx, const std::string& key, const std::string& if_match,
                            std::uint64_t object_size, ByteRange range, BodySink& sink) override;
  Result<std::vector<RemoveFailure>> remove(const RequestContext& ctx, const std::vector<std::string>& keys) override;

 private:
  [[nodiscard]] RequestContext attempt(const RetrySchedule& schedule, const RequestContext& ctx) const {
    RequestContext one = ctx;
    one.deadline = schedule.attempt_deadline(clock_.now(), ctx.deadline);
    return one;
  }

  void succeeded() {
    MutexLock lock(mutex_);
    budget_.earn();
  }

  [[nodiscard]] static Error lost(const Error& error) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("the answer to a conditional write was lost ({}); look whether it took effect", error.describe()))
        .with_retry(RetryClass::kNever)
        .with_http(error.http_status());
  }

  // Waits for the next attempt; or the error that goes up.
  [[nodiscard]] std::optional<Error> pause(RetrySchedule& schedule, const RequestContext& ctx, const Error& error,
                                           bool progressed) {
    if (!ctx.may_wait) return error;
    RetrySchedule::Decision decision;
    const MonoTime now = clock_.now();
    {
      MutexLock lock(mutex_);
      decision = schedule.failed({error.retry_class(), std::chrono::milliseconds(error.retry_after_ms()), progressed}, now,
                                 ctx.deadline, budget_, rng_);
    }
    if (decision.reason == RetrySchedule::Reason::kNotRetryable) return error;
    if (!decision.retry())
      return error.within(fmt::format("after {} attempts, {}", schedule.failures(), to_string(decision.reason)));
    if (auto slept = sleep_until(clock_, ctx, now + decision.wait); !slept) {
      // A cancelled request says so; one that ran out of time says what it was waiting for.
      if (slept.error().code() == ErrorCode::kCancelled) return slept.error();
      return error.within("no time left to try again");
    }
    return std::nullopt;
  }

  const RetryOptions options_;
  const Clock& clock_;
  Mutex mutex_{LockRank::kStore, "retry budget"};
  Rng rng_ GUARDED_BY(mutex_);
  RetryBudget budget_ GUARDED_BY(mutex_);
};

Result<GetInfo> RetryLayer::get_range(const RequestContext& ctx, const std::string& key, const std::string& if_match,
                                      std::uint64_t object_size, ByteRange range, BodySink& sink) {
  RetrySchedule schedule(options_);
  std::string version = if_match;
  ByteRange left = range;
  while (true) {
    CountingSink counted(sink);
    auto result = inner().get_range(attempt(schedule, ctx), key, version, object_size, left, counted);
    const std::uint64_t got = counted.bytes();
    if (counted.refused())
      return result ? fail(ErrorCode::kInternal, "a store went on after its sink refused") : std::move(result);
    if (result && !version.empty() && result->etag != version) {
      return fail(ErrorCode::kPreconditionFailed, fmt::format("'{}': asked for version {}, got {}", key, version, result->etag));
    }
    if (result && got >= left.length) {
      succeeded();
      return result;
    }
    if (result) {
      version = result->etag;  // what came is of this version; the rest must be too
      result = fail(ErrorCode::kCorrupt, fmt::format("'{}': the body ended after {} of {} bytes", key, got, left.length));
    } else if (got > 0 && (version.empty() || result.error().code() == ErrorCode::kCorrupt)) {
      return result;  // what went out is of an unknown version, or did not match its checksum: nothing can be added to it
    }
    left.offset += got;
    left.length -= std::min(got, left.length);
    if (range.length > 0 && left.length == 0 && result.error().retry_class() != RetryClass::kNever) {
      return GetInfo{version, object_size, 0};  // all of it came before the connection broke
    }
    if (auto end = pause(schedule, ctx, result.error(), got >= kProgress)) return fail(*std::move(end));
  }
}

Result<std::vector<RemoveFailure>> RetryLayer::remove(const RequestContext& ctx, const std::vector<std::string>& keys) {
  RetrySchedule schedule(options_);
  std::vector<std::string> left = keys;
  std::vector<RemoveFailure> final_failures;
  while (true) {
    auto result = inner().remove(attempt(schedule, ctx), left);
    if (!result) {
      if (auto end = pause(schedule, ctx, result.error(), false)) return fail(*std::move(end));
      continue;
    }
    // An answer can hold failures of single keys: only those worth it are sent again.
    std::vector<RemoveFailure> again;
    for (auto& failure : *result) {
      (failure.error.retry_class() == RetryClass::kNever ? final_failures : again).push_back(std::move(failure));
    }
    std::optional<Error> end;
    if (!again.empty()) end = pause(schedule, ctx, again.front().error, again.size() < left.size());
    if (again.empty() || end) {
      succeeded();
      for (auto& failure : again) final_failures.push_back(std::move(failure));
      return final_failures;
    }
    left.clear();
    for (auto& failure : again) left.push_back(std::move(failure.key));
  }
}

}  // namespace

ObjectStorePtr with_retry(ObjectStorePtr inner, const RetryOptions& options, const Clock& clock, Rng rng) {
  return std::make_shared<RetryLayer>(std::move(inner), options, clock, rng);
}

}  // namespace thermo::store
