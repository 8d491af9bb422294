#pragma once
// Layers around an ObjectStore, outermost first: trace > metrics > check > retry > limit > fault (tests) > store. Only `retry`
// retries.

#include <memory>
#include <string>

#include "base/metrics.h"
#include "base/rng.h"
#include "store/object_store.h"

namespace thermo::store {

/// One line per request on the log channel kS3: id, verb, key, range, bytes, ms, result.
[[nodiscard]] ObjectStorePtr with_trace(ObjectStorePtr inner);

/// thermocline_store_requests_total{verb,result}, thermocline_store_bytes_total{direction}, thermocline_store_seconds{verb}.
[[nodiscard]] ObjectStorePtr with_metrics(ObjectStorePtr inner, metrics::Registry& registry);

/// Never trusts lengths: a body shorter or longer than the range is kCorrupt; an ETag other than if_match is kPreconditionFailed;
/// a list page that is out of order, outside its prefix or makes no progress is kCorrupt.
[[nodiscard]] ObjectStorePtr with_check(ObjectStorePtr inner);

struct RetryOptions {
  int max_attempts = 6;
  Nanos base_delay = std::chrono::milliseconds(50);  ///< full jitter: uniform in [0, base * 2^attempt]
  Nanos max_delay = std::chrono::seconds(5);
  Nanos attempt_timeout = std::chrono::seconds(30);
  double budget_ratio = 0.2;  ///< retries per successful request that the bucket earns back
  double budget_burst = 50;   ///< retries the bucket holds
};
/// Retries by RetryClass with full jitter within ctx.deadline, Retry-After and the budget. A cut body goes on where it stopped
/// (same If-Match). Writes with a condition are not retried blindly after a lost answer: the caller sees kUnavailable.
[[nodiscard]] ObjectStorePtr with_retry(ObjectStorePtr inner, const RetryOptions& options, const Clock& clock, Rng rng);

struct LimitOptions {
  double initial = 64;  ///< requests in flight
  double min = 2;
  double max = 256;
};
/// AIMD on kThrottled: halves (at most once per 500 ms) and grows by one per `limit` successes. Waiters are served foreground
/// first.
[[nodiscard]] ObjectStorePtr with_limit(ObjectStorePtr inner, const LimitOptions& options, const Clock& clock,
                                        metrics::Registry& registry);

/// Faults for tests: each a probability, decided by `rng`.
struct FaultOptions {
  double throttle = 0;  ///< kThrottled before the call
  double unavailable = 0;
  double short_body = 0;  ///< body cut in the middle, reported as success
  double flip_byte = 0;
  double error_after_put = 0;  ///< the PUT took effect, the caller sees kUnavailable
  double wrong_etag = 0;
};
[[nodiscard]] ObjectStorePtr with_fault(ObjectStorePtr inner, const FaultOptions& options, Rng rng);

}  // namespace thermo::store
