#include "store/s3/s3_error.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

namespace thermo::store {
namespace {

struct Row {
  std::string_view s3_code;
  ErrorCode code;
  std::string_view hint;  // what to do about it; empty when the store's own words are enough
};

constexpr std::array kRows = std::to_array<Row>({
    {"NoSuchKey", ErrorCode::kNotFound, ""},
    {"NoSuchUpload", ErrorCode::kNotFound, ""},
    {"NoSuchBucket", ErrorCode::kNoSuchBucket, "check the bucket's name and the endpoint"},
    {"AccessDenied", ErrorCode::kAccessDenied, "these credentials have no permission for it"},
    {"AllAccessDisabled", ErrorCode::kAccessDenied, ""},
    {"SignatureDoesNotMatch", ErrorCode::kAccessDenied, "the secret key is wrong"},
    {"InvalidAccessKeyId", ErrorCode::kAccessDenied, "no such access key"},
    {"InvalidToken", ErrorCode::kExpiredCredentials, "the session token is not valid: get new credentials"},
    {"ExpiredToken", ErrorCode::kExpiredCredentials, "the session token has expired: get new credentials"},
    {"TokenRefreshRequired", ErrorCode::kExpiredCredentials, "get new credentials"},
    {"RequestTimeTooSkewed", ErrorCode::kClockSkew, "set this machine's clock, e.g. with chrony or timedatectl"},
    {"RequestExpired", ErrorCode::kClockSkew, "set this machine's clock, e.g. with chrony or timedatectl"},
    {"InvalidObjectState", ErrorCode::kNotSupported, "the object is archived: restore it first"},
    {"PreconditionFailed", ErrorCode::kPreconditionFailed, ""},
    {"ConditionalRequestConflict", ErrorCode::kConflict, ""},
    {"OperationAborted", ErrorCode::kConflict, ""},
    {"InvalidRange", ErrorCode::kInvalidRange, ""},
    {"SlowDown", ErrorCode::kThrottled, ""},
    {"RequestLimitExceeded", ErrorCode::kThrottled, ""},
    {"BandwidthLimitExceeded", ErrorCode::kThrottled, ""},
    {"RequestTimeout", ErrorCode::kTimeout, ""},
    {"InternalError", ErrorCode::kUnavailable, ""},
    {"PermanentRedirect", ErrorCode::kWrongRegion, "set --region, or --endpoint to the bucket's own"},
    {"TemporaryRedirect", ErrorCode::kWrongRegion, ""},
    {"IllegalLocationConstraintException", ErrorCode::kWrongRegion, "set --region"},
    {"AuthorizationHeaderMalformed", ErrorCode::kWrongRegion, "set --region"},
    {"NotImplemented", ErrorCode::kNotSupported, ""},
    {"MethodNotAllowed", ErrorCode::kNotSupported, ""},
    {"KeyTooLongError", ErrorCode::kNameTooLong, ""},
});

const Row* find_row(std::string_view s3_code) {
  for (const auto& row : kRows) {
    if (row.s3_code == s3_code) return &row;
  }
  return nullptr;
}

ErrorCode code_of_status(int status) {
  switch (status) {
    case 301:
    case 302:
    case 307:
    case 308: return ErrorCode::kWrongRegion;
    case 304:
    case 412: return ErrorCode::kPreconditionFailed;
    case 401:
    case 403: return ErrorCode::kAccessDenied;
    case 404: return ErrorCode::kNotFound;
    case 405:
    case 501: return ErrorCode::kNotSupported;
    case 408: return ErrorCode::kTimeout;
    case 409: return ErrorCode::kConflict;
    case 416: return ErrorCode::kInvalidRange;
    case 429:
    case 503: return ErrorCode::kThrottled;
    default: return status >= 500 ? ErrorCode::kUnavailable : ErrorCode::kInvalidArgument;
  }
}

// Seconds only; the date form says less than our own backoff knows.
std::uint32_t parse_retry_after(const std::string* value) {
  std::uint32_t seconds = 0;
  if (value == nullptr) return 0;
  const auto parsed = std::from_chars(value->data(), value->data() + value->size(), seconds);
  if (parsed.ec != std::errc() || parsed.ptr != value->data() + value->size()) return 0;
  return (seconds < 3600 ? seconds : 3600U) * 1000U;
}

std::string_view hint_of(const S3Failure& failure, const Row* row) {
  if (row != nullptr) return row->hint;
  switch (failure.status) {
    case 403: return "refused: no permission, a wrong access key or a wrong clock (the answer does not say which)";
    case 404: return "not found";
    case 412: return "no longer the version asked for";
    case 429:
    case 503: return "the store asks for fewer requests";
    default: return failure.body.code.empty() && failure.status >= 500 ? "the store has an internal error" : "";
  }
}

}  // namespace

ErrorCode code_of(int status, std::string_view s3_code) {
  const Row* row = find_row(s3_code);
  return row != nullptr ? row->code : code_of_status(status);
}

S3Failure parse_failure(const net::HttpResponse& answer) {
  S3Failure failure;
  failure.status = answer.status;
  if (auto body = parse_error_body(answer.body)) failure.body = std::move(*body);
  if (failure.body.request_id.empty()) {
    if (const auto* id = answer.header("x-amz-request-id")) failure.body.request_id = *id;
  }
  const auto* region = answer.header("x-amz-bucket-region");
  failure.region = region != nullptr ? *region : failure.body.region;
  failure.retry_after_ms = parse_retry_after(answer.header("retry-after"));
  return failure;
}

Error to_error(const S3Failure& failure, std::string_view what) {
  const auto& body = failure.body;
  const Row* row = find_row(body.code);
  std::string text(what);
  if (!body.code.empty()) text += fmt::format(": {}", body.code);
  // Stores end their sentence; ours goes on.
  std::string_view words = body.message;
  while (words.ends_with('.') || words.ends_with(' ') || words.ends_with('\n')) words.remove_suffix(1);
  if (!words.empty()) text += fmt::format(": {}", words);
  const ErrorCode code = code_of(failure.status, body.code);
  if (code == ErrorCode::kWrongRegion && !failure.region.empty())
    text += fmt::format(": the bucket is in region '{}'", failure.region);
  if (const auto hint = hint_of(failure, row); !hint.empty()) text += fmt::format(": {}", hint);
  if (!body.request_id.empty()) text += fmt::format(" (request id {})", body.request_id);
  Error error(code, std::move(text));
  error.with_http(failure.status);
  if (failure.retry_after_ms > 0) error.with_retry_after_ms(failure.retry_after_ms);
  return error;
}

}  // namespace thermo::store
