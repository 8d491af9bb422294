#include "base/context.h"

#include <atomic>

namespace thermo {

std::string_view to_string(Priority priority) {
  switch (priority) {
    case Priority::kForeground: return "foreground";
    case Priority::kWriteBack: return "write-back";
    case Priority::kPrefetch: return "prefetch";
    case Priority::kScrub: return "scrub";
  }
  return "unknown";
}

RequestContext RequestContext::with_timeout(const Clock& clock, Nanos timeout) {
  RequestContext ctx;
  ctx.deadline = clock.now() + timeout;
  ctx.request_id = next_request_id();
  return ctx;
}

Result<void> RequestContext::check(const Clock& clock) const {
  if (stop.stop_requested()) return fail(ErrorCode::kCancelled, "the request was cancelled");
  if (deadline != MonoTime::max() && clock.now() >= deadline) return fail(ErrorCode::kTimeout, "the request's time limit passed");
  return {};
}

std::uint64_t next_request_id() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace thermo
