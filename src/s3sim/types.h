#pragma once
// Private to s3sim: the words its parts share. An S3Error is an answer, not a failure of the program.

#include <fmt/core.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "net/http_server.h"

namespace thermo::s3sim {

using net::Header;
using Headers = std::vector<Header>;

/// What is answered instead of the wanted thing: status, S3 code, sentence.
struct S3Error {
  int status = 500;
  std::string code;
  std::string message;
  Headers headers = {};                                          ///< besides the usual ones
  std::vector<std::pair<std::string, std::string>> fields = {};  ///< more elements of the error document
};

template <class T>
using S3Result = tl::expected<T, S3Error>;

[[nodiscard]] inline tl::unexpected<S3Error> refuse(int status, std::string code, std::string message) {
  return tl::unexpected<S3Error>(S3Error{status, std::move(code), std::move(message)});
}

[[nodiscard]] inline S3Error no_such_key(std::string_view key) {
  return {404, "NoSuchKey", "The specified key does not exist.", {}, {{"Key", std::string(key)}}};
}
[[nodiscard]] inline S3Error no_such_bucket(std::string_view bucket) {
  return {404, "NoSuchBucket", "The specified bucket does not exist", {}, {{"BucketName", std::string(bucket)}}};
}

/// An open descriptor, closed with the last owner.
class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile();
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

/// One stored object; immutable, so that readers need no lock.
struct Object {
  std::uint64_t size = 0;
  std::string etag;  ///< quoted
  WallNanos modified = 0;
  std::string content_type;                 ///< empty = binary/octet-stream
  Headers metadata;                         ///< x-amz-meta-*, cache-control ... as they are sent back
  Headers checksums;                        ///< x-amz-checksum-* with values in base64
  std::string checksum_type;                ///< FULL_OBJECT or COMPOSITE, with checksums
  std::shared_ptr<const std::string> data;  ///< the bytes, in memory mode
  std::shared_ptr<const OpenFile> file;     ///< or where they are
};
using ObjectPtr = std::shared_ptr<const Object>;

/// "2026-11-30T22:02:38.000Z" and "Mon, 30 Nov 2026 22:02:38 GMT".
[[nodiscard]] std::string iso_time(WallNanos wall);
[[nodiscard]] std::string http_time(WallNanos wall);

/// TRY for S3Result.
#define S3_TRY(expr)                                                                        \
  do {                                                                                      \
    auto s3_try_result = (expr);                                                            \
    if (!s3_try_result) return ::tl::unexpected<S3Error>(std::move(s3_try_result).error()); \
  } while (false)

}  // namespace thermo::s3sim
