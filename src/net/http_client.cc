#include "net/http_client.h"

#include <fmt/format.h>

#include <atomic>

#include "net/curl_error.h"
#include "net/curl_loop.h"

namespace thermo::net {
namespace {

class CurlClient final : public HttpClient {
 public:
  explicit CurlClient(const HttpClientOptions& options) : clock_(*options.clock), loop_(options) {}

  Result<HttpResponse> perform(const RequestContext& ctx, const HttpRequest& request, BodyRouter* router) override;

 private:
  MonoTime real_deadline(const RequestContext& ctx) const;
  /// Waits for the end, or orders it when the deadline passes or the caller's stop token fires. True when it was ordered by the
  /// deadline.
  bool wait(Transfer& transfer, MonoTime deadline);

  const Clock& clock_;
  std::atomic<std::uint64_t> next_id_{1};
  CurlLoop loop_;
};

// The condition variable waits in real time; the caller's deadline is in the time of our clock.
MonoTime CurlClient::real_deadline(const RequestContext& ctx) const {
  if (ctx.deadline == MonoTime::max() || &clock_ == &Clock::system()) return ctx.deadline;
  return Clock::system().now() + (ctx.deadline - clock_.now());
}

bool CurlClient::wait(Transfer& transfer, MonoTime deadline) {
  bool timed_out = false;
  {
    MutexLock lock(transfer.mutex);
    while (!transfer.done && !transfer.stop_requested && !timed_out) {
      if (deadline == MonoTime::max()) {
        transfer.ended.wait(transfer.mutex);
      } else {
        timed_out = !transfer.ended.wait_until(transfer.mutex, deadline);
      }
    }
    if (transfer.done) return false;
  }
  // Its body and sink are the caller's: nothing may return before the loop has let go of them. The loop never blocks, so this is
  // short.
  loop_.cancel(transfer.id);
  MutexLock lock(transfer.mutex);
  while (!transfer.done) transfer.ended.wait(transfer.mutex);
  return timed_out;
}

Result<HttpResponse> CurlClient::perform(const RequestContext& ctx, const HttpRequest& request, BodyRouter* router) {
  if (!ctx.may_wait) return fail(ErrorCode::kWouldWaitStore, "an answer from the network was not to be waited for");
  TRY(ctx.check(clock_));
  Transfer transfer(next_id_.fetch_add(1, std::memory_order_relaxed), request, router, ctx.priority);
  TRY(loop_.submit(transfer));
  bool timed_out = false;
  {
    // Unregisters itself before the transfer leaves the stack.
    const std::stop_callback on_stop(ctx.stop, [&transfer] {
      MutexLock lock(transfer.mutex);
      transfer.stop_requested = true;
      transfer.ended.notify_all();
    });
    timed_out = wait(transfer, real_deadline(ctx));
  }
  MutexLock lock(transfer.mutex);
  if (timed_out && !*transfer.outcome && transfer.outcome->error().code() == ErrorCode::kCancelled) {
    return fail(ErrorCode::kTimeout, fmt::format("{}: the deadline passed with {} bytes of the body received",
                                                 host_and_port(request.url), transfer.body_received));
  }
  return std::move(*transfer.outcome);
}

}  // namespace

const std::string* HttpResponse::header(std::string_view lower_name) const {
  for (const auto& [name, value] : headers) {
    if (name == lower_name) return &value;
  }
  return nullptr;
}

std::unique_ptr<HttpClient> make_http_client(const HttpClientOptions& options) { return std::make_unique<CurlClient>(options); }

}  // namespace thermo::net
