#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "base/result.h"

namespace thermo {
namespace {

constexpr int kLast = static_cast<int>(ErrorCode::kInternal);

// Every code has its own name, an errno a program can act on and a retry class.
TEST(ErrorTable, IsExhaustive) {
  std::set<std::string_view> names;
  for (int i = 0; i <= kLast; ++i) {
    const auto code = static_cast<ErrorCode>(i);
    const auto name = to_string(code);
    EXPECT_NE(name, "unknown") << i;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos) << name;
    EXPECT_GT(to_errno(code), 0) << name;
    EXPECT_EQ(Error(code).retry_class(), default_retry_class(code));
  }
  EXPECT_EQ(to_string(static_cast<ErrorCode>(kLast + 1)), "unknown") << "kInternal is the last one: put new codes before it";
}

TEST(ErrorTable, OnlyNotFoundIsEnoent) {
  for (int i = 0; i <= kLast; ++i) {
    const auto code = static_cast<ErrorCode>(i);
    EXPECT_EQ(to_errno(code) == ENOENT, code == ErrorCode::kNotFound) << to_string(code);
  }
  EXPECT_EQ(to_errno(ErrorCode::kThrottled), EIO);
  EXPECT_EQ(to_errno(ErrorCode::kAccessDenied), EACCES);
  EXPECT_EQ(to_errno(ErrorCode::kPreconditionFailed), ESTALE);
  EXPECT_EQ(to_errno(ErrorCode::kReadOnly), EROFS);
  EXPECT_EQ(to_errno(ErrorCode::kCancelled), EINTR);
  EXPECT_EQ(to_errno(ErrorCode::kNoSpace), ENOSPC);
}

TEST(ErrorTable, RetryClasses) {
  const std::set<ErrorCode> retry = {ErrorCode::kUnavailable, ErrorCode::kTimeout, ErrorCode::kConflict, ErrorCode::kCorrupt};
  const std::set<ErrorCode> refresh = {ErrorCode::kClockSkew, ErrorCode::kExpiredCredentials, ErrorCode::kWrongRegion};
  for (int i = 0; i <= kLast; ++i) {
    const auto code = static_cast<ErrorCode>(i);
    const RetryClass want = code == ErrorCode::kThrottled ? RetryClass::kThrottle
                            : retry.contains(code)        ? RetryClass::kRetry
                            : refresh.contains(code)      ? RetryClass::kRefresh
                                                          : RetryClass::kNever;
    EXPECT_EQ(default_retry_class(code), want) << to_string(code);
  }
}

TEST(Error, CarriesItsStory) {
  auto error = Error(ErrorCode::kThrottled, "slow down").with_http(503).with_retry_after_ms(1500);
  EXPECT_EQ(error.describe(), "throttled: slow down (HTTP 503)");
  const auto outer = error.within("get 'k'");
  EXPECT_EQ(outer.message(), "get 'k': slow down");
  EXPECT_EQ(outer.code(), ErrorCode::kThrottled);
  EXPECT_EQ(outer.http_status(), 503);
  EXPECT_EQ(outer.retry_after_ms(), 1500U);
  EXPECT_EQ(error.message(), "slow down") << "the inner one stays";
  EXPECT_EQ(Error(ErrorCode::kIo).within("read").message(), "read: io");
  EXPECT_EQ(Error(ErrorCode::kIo).describe(), "io");
  EXPECT_EQ(error.with_retry(RetryClass::kNever).retry_class(), RetryClass::kNever);
}

TEST(Error, FromErrno) {
  EXPECT_EQ(errno_error(ENOSPC, "x").code(), ErrorCode::kNoSpace);
  EXPECT_EQ(errno_error(EDQUOT, "x").code(), ErrorCode::kNoSpace);
  EXPECT_EQ(errno_error(EROFS, "x").code(), ErrorCode::kReadOnly);
  EXPECT_EQ(errno_error(ENOENT, "x").code(), ErrorCode::kNotFound);
  EXPECT_EQ(errno_error(EACCES, "x").code(), ErrorCode::kAccessDenied);
  EXPECT_EQ(errno_error(EPERM, "x").code(), ErrorCode::kAccessDenied);
  EXPECT_EQ(errno_error(EIO, "x").code(), ErrorCode::kIo);
  const auto error = errno_error(ENOSPC, "write '/x'");
  EXPECT_EQ(error.sys_errno(), ENOSPC);
  EXPECT_EQ(error.message(), "write '/x': No space left on device");
}

Result<int> half(int n) {
  if (n % 2 != 0) return fail(ErrorCode::kInvalidArgument, "odd");
  return n / 2;
}
Result<int> quarter(int n) {
  TRY_ASSIGN(const int h, half(n));
  TRY(half(h));
  return half(h);
}

TEST(Result, MacrosPropagate) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(3).error().message(), "odd");
  EXPECT_EQ(quarter(6).error().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace thermo
