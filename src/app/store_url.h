#pragma once
// What a user writes to name a store.

#include <string>
#include <string_view>

#include "base/result.h"

namespace thermo::app {

struct StoreUrl {
  enum class Kind { kS3, kFile };
  Kind kind = Kind::kS3;
  std::string bucket;  ///< kS3
  std::string prefix;  ///< kS3: empty or ends in '/'; taken literally: '%' and '+' are characters of the key
  std::string path;    ///< kFile: absolute
  bool operator==(const StoreUrl&) const = default;
  /// "s3://bucket/prefix" or "file:///dir", without the prefix's last '/' where that reads back as the same.
  [[nodiscard]] std::string text() const;
};

/// "s3://bucket[/prefix]" or "file:///dir"; with `bare` also goofys' "bucket[:prefix]". Pure. kInvalidArgument names the text and
/// the form.
[[nodiscard]] Result<StoreUrl> parse_store_url(std::string_view text, bool bare);

}  // namespace thermo::app
