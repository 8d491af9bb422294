#pragma once
// When to try again: a plain state machine. Failures go in, "wait so long" or "give up" comes out; time, randomness and the
// shared budget are passed in, so that one thread can drive it through any history.

#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "store/layers/layers.h"

namespace thermo::store {

/// Token bucket of retries, shared by all requests of a store: when most requests fail, retries must not multiply the load.
/// Not thread-safe.
class RetryBudget {
 public:
  RetryBudget(double burst, double ratio) : burst_(burst), ratio_(ratio), tokens_(burst) {}
  void earn() { tokens_ = tokens_ + ratio_ < burst_ ? tokens_ + ratio_ : burst_; }
  [[nodiscard]] bool spend() {
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  [[nodiscard]] double tokens() const { return tokens_; }

 private:
  const double burst_;
  const double ratio_;
  double tokens_;
};

/// One request's retries. Not thread-safe.
class RetrySchedule {
 public:
  /// A server that asks for a longer pause gets this one: nobody watches a request for minutes.
  static constexpr Nanos kMaxRetryAfter = std::chrono::seconds(30);

  struct Failure {
    RetryClass retry_class;
    Nanos retry_after{0};     ///< what the server asked for; 0 = nothing
    bool progressed = false;  ///< the attempt moved a body on by a good piece: it does not count as a failed one
  };
  enum class Reason : std::uint8_t { kRetry, kNotRetryable, kAttempts, kBudget, kDeadline };
  struct Decision {
    Reason reason;
    Nanos wait{0};  ///< with kRetry
    [[nodiscard]] bool retry() const { return reason == Reason::kRetry; }
  };

  explicit RetrySchedule(const RetryOptions& options) : options_(options) {}

  [[nodiscard]] Decision failed(const Failure& failure, MonoTime now, MonoTime deadline, RetryBudget& budget, Rng& rng);
  /// End of an attempt that begins `now`.
  [[nodiscard]] MonoTime attempt_deadline(MonoTime now, MonoTime deadline) const;
  /// Attempts that failed so far, without those that made progress.
  [[nodiscard]] int failures() const { return failures_; }

 private:
  const RetryOptions options_;
  int failures_ = 0;
  bool refreshed_ = false;
};

/// " (gave up: ...)" for the message of the error that goes up.
[[nodiscard]] std::string_view to_string(RetrySchedule::Reason reason);

}  // namespace thermo::store
