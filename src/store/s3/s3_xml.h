#pragma once
// The XML of S3 answers, out of foreign hands: bounded, never throws, never crashes.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/object_store.h"

namespace thermo::store {

/// Body of an error answer, or of an <Error> inside a 200.
struct S3ErrorBody {
  std::string code, message, request_id, region, endpoint;
};

struct S3DeleteError {
  std::string key, code, message;
};

/// kCorrupt for what is no list answer. Objects and prefixes come out sorted (some stores, and all of S3 Express, do not sort).
[[nodiscard]] Result<ListPage> parse_list_page(std::string_view xml);
/// Nothing when the body is no <Error> document.
[[nodiscard]] std::optional<S3ErrorBody> parse_error_body(std::string_view xml);
[[nodiscard]] Result<std::vector<S3DeleteError>> parse_delete_result(std::string_view xml);
/// <Delete> document for these keys, quiet. Keys must pass `fits_xml`.
[[nodiscard]] std::string delete_document(const std::vector<std::string>& keys);
/// Whether XML 1.0 can carry the key: valid UTF-8 without control characters other than tab, LF, CR.
[[nodiscard]] bool fits_xml(std::string_view key);
/// The ETag in quotes, whether the store wrote them or not: listing and HEAD must agree.
[[nodiscard]] std::string quoted_etag(std::string_view etag);

}  // namespace thermo::store
