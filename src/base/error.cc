#include "base/error.h"

#include <cerrno>
#include <cstring>

namespace thermo {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kNoSuchBucket: return "no_such_bucket";
    case ErrorCode::kAccessDenied: return "access_denied";
    case ErrorCode::kPreconditionFailed: return "precondition_failed";
    case ErrorCode::kConflict: return "conflict";
    case ErrorCode::kAlreadyExists: return "already_exists";
    case ErrorCode::kInvalidArgument: return "invalid_argument";
    case ErrorCode::kNotSupported: return "not_supported";
    case ErrorCode::kThrottled: return "throttled";
    case ErrorCode::kUnavailable: return "unavailable";
    case ErrorCode::kTimeout: return "timeout";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kCorrupt: return "corrupt";
    case ErrorCode::kIo: return "io";
    case ErrorCode::kNoSpace: return "no_space";
    case ErrorCode::kReadOnly: return "read_only";
    case ErrorCode::kStale: return "stale";
    case ErrorCode::kIsDirectory: return "is_directory";
    case ErrorCode::kNotDirectory: return "not_directory";
    case ErrorCode::kNotEmpty: return "not_empty";
    case ErrorCode::kNameTooLong: return "name_too_long";
    case ErrorCode::kNoData: return "no_data";
    case ErrorCode::kRange: return "range";
    case ErrorCode::kInvalidRange: return "invalid_range";
    case ErrorCode::kBusy: return "busy";
    case ErrorCode::kClockSkew: return "clock_skew";
    case ErrorCode::kExpiredCredentials: return "expired_credentials";
    case ErrorCode::kWrongRegion: return "wrong_region";
    case ErrorCode::kTls: return "tls";
    case ErrorCode::kWouldWaitDevice: return "would_wait_device";
    case ErrorCode::kWouldWaitStore: return "would_wait_store";
    case ErrorCode::kInternal: return "internal";
  }
  return "unknown";
}

RetryClass default_retry_class(ErrorCode code) {
  switch (code) {
    case ErrorCode::kThrottled: return RetryClass::kThrottle;
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout:
    case ErrorCode::kConflict:
    case ErrorCode::kCorrupt: return RetryClass::kRetry;
    case ErrorCode::kClockSkew:
    case ErrorCode::kExpiredCredentials:
    case ErrorCode::kWrongRegion: return RetryClass::kRefresh;
    default: return RetryClass::kNever;
  }
}

int to_errno(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotFound: return ENOENT;
    case ErrorCode::kNoSuchBucket: return EIO;  // never ENOENT: the file may well exist, its bucket does not answer
    case ErrorCode::kAccessDenied: return EACCES;
    case ErrorCode::kPreconditionFailed: return ESTALE;
    case ErrorCode::kConflict: return EIO;
    case ErrorCode::kAlreadyExists: return EEXIST;
    case ErrorCode::kInvalidArgument: return EINVAL;
    case ErrorCode::kNotSupported: return EOPNOTSUPP;
    case ErrorCode::kThrottled: return EIO;
    case ErrorCode::kUnavailable: return EIO;
    case ErrorCode::kTimeout: return EIO;
    case ErrorCode::kCancelled: return EINTR;
    case ErrorCode::kCorrupt: return EIO;
    case ErrorCode::kIo: return EIO;
    case ErrorCode::kNoSpace: return ENOSPC;
    case ErrorCode::kReadOnly: return EROFS;
    case ErrorCode::kStale: return ESTALE;
    case ErrorCode::kIsDirectory: return EISDIR;
    case ErrorCode::kNotDirectory: return ENOTDIR;
    case ErrorCode::kNotEmpty: return ENOTEMPTY;
    case ErrorCode::kNameTooLong: return ENAMETOOLONG;
    case ErrorCode::kNoData: return ENODATA;
    case ErrorCode::kRange: return ERANGE;
    case ErrorCode::kInvalidRange: return EINVAL;
    case ErrorCode::kBusy: return EBUSY;
    case ErrorCode::kClockSkew: return EACCES;
    case ErrorCode::kExpiredCredentials: return EACCES;
    case ErrorCode::kWrongRegion: return EIO;
    case ErrorCode::kTls: return EIO;
    case ErrorCode::kWouldWaitDevice: return EAGAIN;
    case ErrorCode::kWouldWaitStore: return EAGAIN;
    case ErrorCode::kInternal: return EIO;
  }
  return EIO;
}

Error::Error(ErrorCode code, std::string message) : code_(code), retry_(default_retry_class(code)) {
  if (!message.empty()) message_ = std::make_shared<const std::string>(std::move(message));
}

std::string_view Error::message() const { return message_ ? std::string_view(*message_) : std::string_view(); }

Error Error::within(std::string_view what) const {
  Error wrapped = *this;
  std::string text(what);
  text += ": ";
  text += message_ ? std::string_view(*message_) : to_string(code_);
  wrapped.message_ = std::make_shared<const std::string>(std::move(text));
  return wrapped;
}

std::string Error::describe() const {
  std::string text(to_string(code_));
  if (message_) text += ": " + *message_;
  if (http_status_ != 0) text += " (HTTP " + std::to_string(http_status_) + ")";
  return text;
}

Error errno_error(int err, std::string_view what) {
  ErrorCode code = ErrorCode::kIo;
  if (err == ENOSPC || err == EDQUOT) code = ErrorCode::kNoSpace;
  else if (err == EROFS) code = ErrorCode::kReadOnly;
  else if (err == ENOENT) code = ErrorCode::kNotFound;
  else if (err == EACCES || err == EPERM) code = ErrorCode::kAccessDenied;
  std::string text(what);
  text += ": ";
  text += std::strerror(err);  // NOLINT(concurrency-mt-unsafe): glibc's strerror is thread-safe for known errnos
  return Error(code, std::move(text)).with_errno(err);
}

}  // namespace thermo
