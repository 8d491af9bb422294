#pragma once
// The one place that says what an S3 error answer means.

#include <string>
#include <string_view>

#include "base/error.h"
#include "net/http_client.h"
#include "store/s3/s3_xml.h"

namespace thermo::store {

/// An error answer taken apart. `code` is empty for HEAD (no body) and for bodies that are no S3 error.
struct S3Failure {
  int status = 0;
  S3ErrorBody body;
  std::string region;  ///< x-amz-bucket-region or the body's Region
  std::uint32_t retry_after_ms = 0;
};

[[nodiscard]] S3Failure parse_failure(const net::HttpResponse& answer);
/// `what` names the verb and the key ("GET 'a/b' of bucket 'x'"). Never holds a secret.
[[nodiscard]] Error to_error(const S3Failure& failure, std::string_view what);
/// The code of one key inside a delete answer, by the same table.
[[nodiscard]] ErrorCode code_of(int status, std::string_view s3_code);

}  // namespace thermo::store
