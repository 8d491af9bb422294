#pragma once
// Private to s3sim: the aws-chunked framing of x-amz-content-sha256: STREAMING-*. Chunk signatures are skipped, not checked.

#include <string>
#include <string_view>

#include "s3sim/types.h"

namespace thermo::s3sim {

struct AwsChunkedBody {
  std::string data;
  Headers trailers;  ///< names lower-cased, x-amz-trailer-signature left out
};

/// `framed` is the whole body as it came (transfer chunks already removed). An error is the answer 400 InvalidChunkSizeError /
/// IncompleteBody.
[[nodiscard]] S3Result<AwsChunkedBody> decode_aws_chunked(std::string_view framed);

}  // namespace thermo::s3sim
