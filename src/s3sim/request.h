#pragma once
// Private to s3sim: what an HTTP request means in S3.

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "s3sim/types.h"

namespace thermo::s3sim {

/// What is asked. The names (to_string) are those of the counters and of the fault grammar.
enum class Op {
  kGet,
  kHead,
  kList,
  kPut,
  kDelete,
  kDeleteMany,
  kCopy,
  kCreateUpload,
  kPart,
  kPartCopy,
  kComplete,
  kAbort,
  kListParts,
  kListUploads,
  kListBuckets,
  kHeadBucket,
  kBucketInfo,
  kCreateBucket,
  kDeleteBucket,
  kUnsupported,
};
[[nodiscard]] std::string_view to_string(Op op);
inline constexpr int kOps = static_cast<int>(Op::kUnsupported) + 1;

struct S3Request {
  Op op = Op::kUnsupported;
  std::string bucket;
  std::string key;                                         ///< decoded bytes
  std::string path;                                        ///< as sent, without the query
  std::vector<std::pair<std::string, std::string>> query;  ///< decoded
  [[nodiscard]] const std::string* param(std::string_view name) const;
};

/// Takes the target apart. A Host of a name whose first label is an existing bucket (`has_bucket`) makes it virtual-host style,
/// else the first path segment is the bucket. An error is the answer 400.
[[nodiscard]] S3Result<S3Request> parse_s3_request(const net::ServerRequest& request,
                                                   const std::function<bool(const std::string&)>& has_bucket);

}  // namespace thermo::s3sim
