#include "store/s3/s3_wire.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/log.h"
#include "net/sigv4_canonical.h"
#include "store/s3/s3_dates.h"

namespace thermo::store {
namespace {

constexpr WallNanos kMinute = 60'000'000'000;
// The store refuses from 15 minutes on. A HEAD's 403 has no body that says why, so there the Date header must.
constexpr WallNanos kSuspiciousSkew = 14 * kMinute;

std::string_view text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

bool same_key(const net::AccessKey& a, const net::AccessKey& b) {
  return a.id == b.id && a.secret == b.secret && a.session_token == b.session_token;
}

}  // namespace

S3Wire::S3Wire(const S3Options& options, S3Address address)
    : options_(options), address_(std::move(address)), region_(address_.first_region()) {}

std::string S3Wire::region() const {
  MutexLock lock(mutex_);
  return region_;
}

std::string S3Wire::describe(const S3Call& call) const {
  if (call.key.empty()) return fmt::format("{} of bucket '{}'", call.method == "GET" ? "LIST" : call.method, options_.bucket);
  return fmt::format("{} '{}' of bucket '{}'", call.method, call.key, options_.bucket);
}

Result<net::HttpResponse> S3Wire::send_once(const RequestContext& ctx, const S3Call& call, const Credentials& credentials,
                                            const std::string& region, WallNanos now) {
  net::SigningInput input;
  input.method = call.method;
  input.encoded_path = address_.path(call.key);
  input.query = call.query;
  input.headers = call.headers;
  if (options_.requester_pays) input.headers.emplace_back("x-amz-request-payer", "requester");
  const std::string host = address_.host(region);

  net::HttpRequest request;
  request.method = call.method;
  request.url = address_.origin(region) + input.encoded_path;
  if (!call.query.empty()) request.url += '?' + net::canonical_query(call.query);
  request.body = call.body;
  request.expected_body = call.expected_body;
  if (credentials.anonymous) {
    request.headers = std::move(input.headers);
    return options_.http->perform(ctx, request, call.router);
  }
  if (address_.tls()) {
    input.payload_hash = std::string(net::kUnsignedPayload);
  } else {
    input.payload_hash = call.body.empty() ? net::kEmptySha256 : net::sha256_hex(text_of(call.body));
  }
  input.region = region;
  input.amz_date = net::amz_date(now);
  input.headers.emplace_back("x-amz-date", input.amz_date);
  input.headers.emplace_back("x-amz-content-sha256", input.payload_hash);
  if (!credentials.key.session_token.empty()) input.headers.emplace_back("x-amz-security-token", credentials.key.session_token);
  request.headers = input.headers;
  input.headers.emplace_back("host", host);  // sent by the transport, out of the URL
  request.headers.emplace_back("Authorization", net::authorization(input, credentials.key));
  return options_.http->perform(ctx, request, call.router);
}

Result<net::HttpResponse> S3Wire::send(const RequestContext& ctx, const S3Call& call) {
  TRY_ASSIGN(auto credentials, options_.credentials->get(ctx));
  Tried tried;
  while (true) {
    const std::string current = region();
    const WallNanos now = options_.clock->wall() + clock_offset_.load(std::memory_order_relaxed);
    TRY_ASSIGN(auto answer, send_once(ctx, call, credentials, current, now));
    if (answer.status / 100 == 2) return answer;
    const auto failure = parse_failure(answer);
    TRY_ASSIGN(const bool again, learn(ctx, answer, failure, now, current, credentials, tried));
    if (again) continue;
    if (code_of(failure.status, failure.body.code) == ErrorCode::kClockSkew) return fail(skew_error(failure, answer, call));
    // A missing key and a missing bucket are told apart by the code; a listing has no key that could be missing.
    auto error = to_error(failure, describe(call));
    if (call.key.empty() && error.code() == ErrorCode::kNotFound)
      error = Error(ErrorCode::kNoSuchBucket, std::string(error.message())).with_http(404);
    return fail(error);
  }
}

Result<bool> S3Wire::learn(const RequestContext& ctx, const net::HttpResponse& answer, const S3Failure& failure,
                           WallNanos sent_at, const std::string& region, Credentials& credentials, Tried& tried) {
  if (learn_region(failure, region, tried)) return true;
  if (credentials.anonymous) return false;
  if (learn_clock(answer, failure, sent_at, tried)) return true;
  const ErrorCode code = code_of(failure.status, failure.body.code);
  const bool refused = code == ErrorCode::kAccessDenied || code == ErrorCode::kExpiredCredentials;
  if (!refused || tried.credentials) return false;
  // Rotated meanwhile? Asked again only when there really are others: a plain "no permission" costs no second request.
  tried.credentials = true;
  if (!options_.credentials->invalidate()) return false;
  TRY_ASSIGN(auto fresh, options_.credentials->get(ctx));
  if (fresh.anonymous == credentials.anonymous && same_key(fresh.key, credentials.key)) return false;
  credentials = std::move(fresh);
  return true;
}

bool S3Wire::learn_region(const S3Failure& failure, const std::string& region, Tried& tried) {
  // HEAD tells it by header only; GET of the wrong region by 301, 307, 400 (signature scope) or 403.
  const bool possible = failure.status == 301 || failure.status == 307 || failure.status == 400 || failure.status == 403;
  if (!possible || tried.region || failure.region.empty() || failure.region == region) return false;
  for (const char c : failure.region) {
    // It becomes part of a host name.
    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '-' && c != '_') return false;
  }
  tried.region = true;
  log::info("bucket '{}' is in region '{}', not '{}'", options_.bucket, failure.region, region);
  MutexLock lock(mutex_);
  region_ = failure.region;
  return true;
}

bool S3Wire::learn_clock(const net::HttpResponse& answer, const S3Failure& failure, WallNanos sent_at, Tried& tried) {
  if (tried.clock) return false;
  const auto* header = answer.header("date");
  const auto store_time = header != nullptr ? parse_http_date(*header) : std::nullopt;
  if (!store_time) return false;
  const bool said = code_of(failure.status, failure.body.code) == ErrorCode::kClockSkew;
  const bool likely = failure.status == 403 && failure.body.code.empty() && std::llabs(*store_time - sent_at) > kSuspiciousSkew;
  if (!said && !likely) return false;
  tried.clock = true;
  const WallNanos offset = *store_time - options_.clock->wall();
  clock_offset_.store(offset, std::memory_order_relaxed);
  log::warn("the clock of this machine is {} min {} the store: set it, e.g. with chrony or timedatectl",
            (std::llabs(offset) + kMinute / 2) / kMinute, offset < 0 ? "ahead of" : "behind");
  return true;
}

Error S3Wire::skew_error(const S3Failure& failure, const net::HttpResponse& answer, const S3Call& call) const {
  const auto* header = answer.header("date");
  const auto store_time = header != nullptr ? parse_http_date(*header) : std::nullopt;
  if (!store_time) return to_error(failure, describe(call));
  const WallNanos offset = *store_time - options_.clock->wall();
  return Error(ErrorCode::kClockSkew,
               fmt::format("{}: {}: the clock of this machine is {} min {} the store: set it, e.g. with chrony or timedatectl",
                           describe(call), failure.body.code, (std::llabs(offset) + kMinute / 2) / kMinute,
                           offset < 0 ? "ahead of" : "behind"))
      .with_http(failure.status);
}

}  // namespace thermo::store
