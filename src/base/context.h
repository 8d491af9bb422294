#pragma once
// RequestContext: who asks, until when, how important it is. First argument of every call that may do I/O.

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace thermo {

/// Order of service at every bounded resource, most urgent first.
enum class Priority : std::uint8_t { kForeground, kWriteBack, kPrefetch, kScrub };
[[nodiscard]] std::string_view to_string(Priority priority);

/// On whose behalf: the caller of a FUSE request, or the owner of an access key.
struct Principal {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int32_t pid = 0;
};

/// Value type, cheap to copy; a copy with changes describes a sub-request.
struct RequestContext {
  MonoTime deadline = MonoTime::max();  ///< no call waits past it; then kTimeout
  std::stop_token stop;                 ///< fired: kCancelled soon
  Priority priority = Priority::kForeground;
  /// False: answer from memory or with kWouldWaitDevice / kWouldWaitStore, never block on disk or network.
  bool may_wait = true;
  std::uint64_t request_id = 0;  ///< one per FUSE request or command; on every log line
  Principal principal;

  /// A context that ends `timeout` from now.
  [[nodiscard]] static RequestContext with_timeout(const Clock& clock, Nanos timeout);
  /// kTimeout or kCancelled when this request should end, else success.
  [[nodiscard]] Result<void> check(const Clock& clock) const;
  /// Copies with one thing changed.
  [[nodiscard]] RequestContext at(Priority p) const {
    auto c = *this;
    c.priority = p;
    return c;
  }
  [[nodiscard]] RequestContext waiting(bool may) const {
    auto c = *this;
    c.may_wait = may;
    return c;
  }
};

/// Process-wide increasing id, never 0.
[[nodiscard]] std::uint64_t next_request_id();

}  // namespace thermo
