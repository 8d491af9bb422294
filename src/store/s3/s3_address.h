#pragma once
// Where a bucket lives: endpoint, addressing style, region in the host name, and the canonical store id.

#include <string>
#include <string_view>

#include "base/result.h"
#include "store/s3/s3_store.h"

namespace thermo::store {

/// Value type; computed once per store and again with another region after a redirect.
class S3Address {
 public:
  /// kInvalidArgument for a bad bucket name or endpoint, naming it and the mend.
  [[nodiscard]] static Result<S3Address> make(const S3Options& options);

  [[nodiscard]] bool tls() const { return tls_; }
  /// Host header (and signed host) of a request in `region`: the port only when it is not the scheme's own.
  [[nodiscard]] std::string host(const std::string& region) const;
  /// "http(s)://host".
  [[nodiscard]] std::string origin(const std::string& region) const { return (tls_ ? "https://" : "http://") + host(region); }
  /// Encoded path of a key, or of the bucket for an empty key.
  [[nodiscard]] std::string path(std::string_view key) const;
  /// "s3://host[:port]/bucket"; one name for all regions of AWS, so that how the region is written changes no version id.
  [[nodiscard]] std::string id() const;
  /// Region to start with: as given, of the endpoint's name, or us-east-1.
  [[nodiscard]] const std::string& first_region() const { return region_; }
  /// Amazon's own: the host follows the region.
  [[nodiscard]] bool is_aws() const { return is_aws_; }

 private:
  S3Address() = default;
  std::string bucket_;
  std::string region_;
  std::string host_;       // lower-case, without port; of AWS: the part behind the region ("amazonaws.com")
  std::string aws_label_;  // of AWS: "s3" or "s3.dualstack" or "s3-fips"
  std::string port_;       // ":9000" or empty
  bool tls_ = true;
  bool is_aws_ = false;
  bool virtual_host_ = false;
};

}  // namespace thermo::store
