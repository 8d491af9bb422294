#include "app/store_factory.h"

#include <fmt/core.h>

#include <optional>
#include <thread>

#include "base/rng.h"
#include "store/file/file_store.h"
#include "store/layers/layers.h"

namespace thermo::app {
namespace {

constexpr auto kCheckTimeout = std::chrono::seconds(10);
constexpr auto kCheckAttempt = std::chrono::seconds(4);
constexpr int kCheckAttempts = 3;

/// "with the keys of ...", as the sentence goes on.
std::string keys_of(std::string_view credentials) {
  if (credentials == "anonymous") return "without keys (--no-sign-request)";
  if (credentials == "environment") return "with the keys of the environment (AWS_ACCESS_KEY_ID)";
  return fmt::format("with the keys of {}", credentials);
}

std::string endpoint_of(const MountSpec& spec) { return spec.endpoint.empty() ? std::string("AWS") : spec.endpoint; }

}  // namespace

std::shared_ptr<net::HttpClient> StoreFactory::http(const MountSpec& spec) {
  MutexLock lock(mutex_);
  auto& client = clients_[{spec.ca_bundle, spec.verify_tls}];
  if (!client) {
    net::HttpClientOptions options;
    options.max_connections = connections_;
    options.max_connections_per_host = connections_;
    options.ca_bundle = spec.ca_bundle;
    options.verify_tls = spec.verify_tls;
    options.clock = &clock_;
    client = net::make_http_client(options);
  }
  return client;
}

Result<StoreSetup> StoreFactory::protocol(const MountSpec& spec) {
  StoreSetup setup;
  if (spec.store.kind == StoreUrl::Kind::kFile) {
    TRY_ASSIGN(setup.bare, store::make_file_store(spec.store.path));
    setup.credentials = "none";
    return setup;
  }
  store::S3Options options;
  options.bucket = spec.store.bucket;
  options.endpoint = spec.endpoint;
  options.region = spec.region;
  options.addressing = spec.addressing;
  options.requester_pays = spec.requester_pays;
  TRY_ASSIGN(options.credentials, store::make_credentials(spec.credentials));
  setup.credentials = options.credentials->describe();
  options.http = http(spec);
  options.clock = &clock_;
  TRY_ASSIGN(setup.bare, store::make_s3_store(options));
  return setup;
}

Result<StoreSetup> StoreFactory::make(const MountSpec& spec) {
  TRY_ASSIGN(StoreSetup setup, protocol(spec));
  store::RetryOptions retry;
  store::LimitOptions limit;
  limit.initial = static_cast<double>(connections_);
  auto layered = store::with_limit(setup.bare, limit, clock_, registry_);
  layered = store::with_retry(std::move(layered), retry, clock_, Rng::from_os());
  layered = store::with_check(std::move(layered));
  layered = store::with_metrics(std::move(layered), registry_);
  setup.layered = store::with_trace(std::move(layered));
  setup.bare = store::with_trace(std::move(setup.bare));
  return setup;
}

Result<bool> check_store(const MountSpec& spec, const StoreSetup& setup, const Clock& clock, const std::stop_token& stop) {
  const MonoTime end = clock.now() + kCheckTimeout;
  store::ListRequest request;
  request.prefix = spec.store.prefix;
  request.max_keys = 1;
  std::optional<Error> first;
  for (int attempt = 1;; ++attempt) {
    auto ctx = RequestContext::with_timeout(clock, kCheckAttempt);
    ctx.deadline = std::min(ctx.deadline, end);
    ctx.stop = stop;
    auto page = setup.bare->list_page(ctx, request);
    if (page) return !page->objects.empty() || !page->prefixes.empty();
    if (stop.stop_requested()) return fail(ErrorCode::kCancelled, "the mount was given up");
    // A plain refusal is the reason. Of failures that may pass the first says most: later attempts may only know that the time is
    // over.
    const auto retry = page.error().retry_class();
    const bool passing = retry == RetryClass::kRetry || retry == RetryClass::kThrottle;
    if (!first || !passing) first = page.error();
    if (!passing || attempt == kCheckAttempts || clock.now() + Millis(300) >= end)
      return fail(explain_store_error(spec, setup.credentials, *first));
    std::this_thread::sleep_for(Millis(300));
  }
}

Error explain_store_error(const MountSpec& spec, std::string_view credentials, const Error& error) {
  const std::string url = spec.store.text();
  const std::string where = endpoint_of(spec);
  const auto say = [&](std::string sentence) { return Error(error.code(), std::move(sentence)).with_http(error.http_status()); };
  if (spec.store.kind == StoreUrl::Kind::kFile) return say(fmt::format("cannot read {}: {}", url, error.message()));
  // The store's own words name the mend; what is added here is whose keys, which bucket and which endpoint.
  switch (error.code()) {
    case ErrorCode::kNoSuchBucket:
    case ErrorCode::kNotFound:
      return say(fmt::format("there is no bucket '{}' at {}: {}", spec.store.bucket, where, error.message()));
    case ErrorCode::kAccessDenied:
      // Policies often allow a part of a bucket only; then its root cannot be listed.
      return say(
          fmt::format("{} refuses access to {} {}: {}{}", where, url, keys_of(credentials), error.message(),
                      spec.store.prefix.empty() && error.message().find("AccessDenied") != std::string_view::npos
                          ? fmt::format("; if they may see only a part of it, mount that: s3://{}/PREFIX", spec.store.bucket)
                          : ""));
    case ErrorCode::kClockSkew:
      return say(fmt::format("the clocks of this machine and of {} differ by more than 15 minutes: {}", where, error.message()));
    case ErrorCode::kExpiredCredentials:
      return say(fmt::format("{} does not take the session {} any more: {}", where, keys_of(credentials), error.message()));
    case ErrorCode::kWrongRegion:
      return say(fmt::format("the bucket '{}' is in another region: {}", spec.store.bucket, error.message()));
    case ErrorCode::kTls: return say(fmt::format("no safe connection to {}: {}", where, error.message()));
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout: {
      // A server that speaks TLS hangs up on plain text without a word.
      const bool hung_up = where.starts_with("http://") && error.message().find("before any answer") != std::string_view::npos;
      return say(fmt::format("{} does not answer: {}{}", where, error.message(),
                             hung_up ? "; if it speaks TLS, write https:// in --endpoint" : ""));
    }
    case ErrorCode::kCorrupt:
      return say(fmt::format("{} answers, but not as an S3 store: {}; check --endpoint", where, error.message()));
    case ErrorCode::kThrottled:
      return say(fmt::format("{} asks for fewer requests right now: {}; try again later", where, error.message()));
    default: return say(fmt::format("cannot read {}: {}", url, error.message()));
  }
}

}  // namespace thermo::app
