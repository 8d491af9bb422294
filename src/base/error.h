#pragma once
// Expected failures are values: `Error` says what kind of failure it is (closed `ErrorCode`), whether trying again can help
// (`RetryClass`), and carries a message that names the input and the mend.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace thermo {

/// Every kind of failure that crosses a module border. Closed: the tables that map it (errno, S3 answer) switch over all of it.
enum class ErrorCode : std::uint8_t {
  kNotFound,            ///< the store said 404 for the key, or a complete listing lacks the name
  kNoSuchBucket,        ///< the store said NoSuchBucket
  kAccessDenied,        ///< 401/403 of any kind: wrong key, bad signature, no permission
  kPreconditionFailed,  ///< 412: the object is no longer the version that was asked for
  kConflict,            ///< 409: a concurrent operation; try again
  kAlreadyExists,
  kInvalidArgument,  ///< bad input from the user, the config or a program
  kNotSupported,
  kThrottled,    ///< SlowDown, 429, 503 from the store
  kUnavailable,  ///< connection refused or reset, name lookup failed, 5xx
  kTimeout,      ///< the deadline passed or the peer stalled
  kCancelled,    ///< the stop token fired
  kCorrupt,      ///< a checksum or a length did not match
  kIo,           ///< a local device failed
  kNoSpace,
  kReadOnly,
  kStale,  ///< this handle's version or node is gone: open again
  kIsDirectory,
  kNotDirectory,
  kNotEmpty,
  kNameTooLong,
  kNoData,              ///< no such extended attribute
  kRange,               ///< the caller's buffer is too small
  kInvalidRange,        ///< 416: the range starts past the end
  kBusy,                ///< held by somebody else (lock, mount point)
  kClockSkew,           ///< RequestTimeTooSkewed: the local clock is off
  kExpiredCredentials,  ///< ExpiredToken: refresh, then try again
  kWrongRegion,         ///< the bucket lives in another region (Error::detail holds it)
  kTls,                 ///< certificate or handshake failure
  kWouldWaitDevice,     ///< RequestContext::may_wait is false and the answer needs a disk
  kWouldWaitStore,      ///< RequestContext::may_wait is false and the answer needs the network
  kInternal,            ///< a bug in this program
};

enum class RetryClass : std::uint8_t {
  kNever,     ///< the same request fails the same way
  kRetry,     ///< transient: retry with backoff
  kThrottle,  ///< transient and the store asks for fewer requests
  kRefresh,   ///< retry once after credentials, clock or region were refreshed
};

/// Stable lower-case name of a code, for logs and --json ("not_found").
[[nodiscard]] std::string_view to_string(ErrorCode code);

/// What retrying can do for a code; an Error may override it.
[[nodiscard]] RetryClass default_retry_class(ErrorCode code);

/// A failure. Cheap to copy (one shared pointer); immutable after construction except through `with`.
class [[nodiscard]] Error {
 public:
  explicit Error(ErrorCode code, std::string message = {});

  [[nodiscard]] ErrorCode code() const { return code_; }
  [[nodiscard]] RetryClass retry_class() const { return retry_; }
  /// Sentence for a person. Never holds a secret.
  [[nodiscard]] std::string_view message() const;
  /// HTTP status of the answer, 0 where there was none.
  [[nodiscard]] int http_status() const { return http_status_; }
  /// errno of the failing system call, 0 where there was none.
  [[nodiscard]] int sys_errno() const { return sys_errno_; }
  /// How long the server asked us to wait (Retry-After), in milliseconds; 0 = it did not say.
  [[nodiscard]] std::uint32_t retry_after_ms() const { return retry_after_ms_; }

  Error& with_retry(RetryClass retry) {
    retry_ = retry;
    return *this;
  }
  Error& with_http(int status) {
    http_status_ = static_cast<std::int16_t>(status);
    return *this;
  }
  Error& with_errno(int err) {
    sys_errno_ = static_cast<std::int16_t>(err);
    return *this;
  }
  Error& with_retry_after_ms(std::uint32_t ms) {
    retry_after_ms_ = ms;
    return *this;
  }
  /// Puts "what: " in front of the message: `return error.within("open cache /x")`.
  [[nodiscard]] Error within(std::string_view what) const;
  /// One line for logs: "not_found: no such key 'a' (HTTP 404)".
  [[nodiscard]] std::string describe() const;

 private:
  ErrorCode code_;
  RetryClass retry_;
  std::int16_t http_status_ = 0;
  std::int16_t sys_errno_ = 0;
  std::uint32_t retry_after_ms_ = 0;
  std::shared_ptr<const std::string> message_;
};

/// An Error from `errno` of a failed system call: "what: No space left on device". ENOSPC/EDQUOT -> kNoSpace, EROFS -> kReadOnly,
/// ENOENT -> kNotFound, EACCES/EPERM -> kAccessDenied, else kIo.
[[nodiscard]] Error errno_error(int err, std::string_view what);

/// The errno that a program sees through the mount: the one table from ErrorCode to errno.
[[nodiscard]] int to_errno(ErrorCode code);

}  // namespace thermo
