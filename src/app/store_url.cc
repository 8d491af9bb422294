#include "app/store_url.h"

#include <fmt/core.h>

#include <algorithm>

namespace thermo::app {
namespace {

constexpr std::size_t kMaxKeyBytes = 1024;
constexpr std::string_view kForms = "write s3://bucket, s3://bucket/prefix or file:///folder";

bool bucket_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

/// Upper-case letters and underscores are of old buckets and of other stores: the store decides, this only keeps nonsense out.
bool bucket_ok(std::string_view bucket) {
  return bucket.size() >= 3 && bucket.size() <= 255 && std::all_of(bucket.begin(), bucket.end(), bucket_char) &&
         bucket.front() != '.' && bucket.front() != '-';
}

Result<StoreUrl> s3_url(std::string_view text, std::string_view bucket, std::string_view prefix) {
  if (!bucket_ok(bucket)) {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("'{}' in '{}' is not a bucket name: 3 or more letters, digits, '-', '.' or '_'; {}", bucket, text, kForms));
  }
  StoreUrl url;
  url.bucket = bucket;
  url.prefix = prefix;
  if (!url.prefix.empty() && !url.prefix.ends_with('/')) url.prefix += '/';
  if (url.prefix.size() > kMaxKeyBytes) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("the prefix of 's3://{}' is longer than {} bytes, the longest key", bucket, kMaxKeyBytes));
  }
  return url;
}

}  // namespace

std::string StoreUrl::text() const {
  if (kind == Kind::kFile) return "file://" + path;
  std::string out = "s3://" + bucket;
  if (prefix.empty()) return out;
  // "a/" reads back from "a", but "a//" and "/" do not from "a/" and "".
  const std::string_view shorter(prefix.data(), prefix.size() - 1);
  out += '/';
  out += shorter.empty() || shorter.ends_with('/') ? std::string_view(prefix) : shorter;
  return out;
}

Result<StoreUrl> parse_store_url(std::string_view text, bool bare) {
  if (text.find('\0') != std::string_view::npos)
    return fail(ErrorCode::kInvalidArgument, "a store's name cannot hold a NUL byte");
  if (text.starts_with("s3://")) {
    const std::string_view rest = text.substr(5);
    const std::size_t slash = rest.find('/');
    return s3_url(text, rest.substr(0, slash), slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1));
  }
  if (text.starts_with("file://")) {
    std::string_view path = text.substr(7);
    if (!path.starts_with('/')) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("'{}' needs an absolute folder: write file:///folder, with three slashes", text));
    }
    while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    StoreUrl url;
    url.kind = StoreUrl::Kind::kFile;
    url.path = path;
    return url;
  }
  if (text.starts_with("s3a://") || text.starts_with("s3n://") || text.starts_with("S3://")) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("'{}': write s3://{}", text, text.substr(text.find("//") + 2)));
  }
  if (text.find("://") != std::string_view::npos) {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("'{}' is not a store this program knows; {}; an S3 server's address goes to --endpoint", text, kForms));
  }
  if (bare) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return s3_url(text, text, {});
    std::string_view prefix = text.substr(colon + 1);
    while (prefix.starts_with('/')) prefix.remove_prefix(1);
    return s3_url(text, text.substr(0, colon), prefix);
  }
  if (text.starts_with('/'))
    return fail(ErrorCode::kInvalidArgument, fmt::format("'{}' is not a store; for a folder write file://{}", text, text));
  if (bucket_ok(text.substr(0, text.find('/'))))
    return fail(ErrorCode::kInvalidArgument, fmt::format("'{}' is not a store; for a bucket write s3://{}", text, text));
  return fail(ErrorCode::kInvalidArgument, fmt::format("'{}' is not a store; {}", text, kForms));
}

}  // namespace thermo::app
