#include "store/s3/s3_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "net/sigv4.h"
#include "net/sigv4_canonical.h"

namespace thermo::store {
namespace {

bool is_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool is_ip(const std::string& host) {
  in6_addr ignored{};
  if (!host.empty() && host.front() == '[') return inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &ignored) == 1;
  return inet_pton(AF_INET, host.c_str(), &ignored) == 1;
}

Result<void> check_bucket(const std::string& bucket) {
  const auto bad = [&](std::string_view why) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("'{}' is not a bucket name: {}", bucket, why));
  };
  if (bucket.starts_with("arn:"))
    return bad("access points given as ARN are not supported; use the bucket's name or the access point's alias");
  if (bucket.size() < 3 || bucket.size() > 255) return bad("it must have 3 to 63 characters");
  for (const char c : bucket) {
    if (!is_alnum(c) && c != '-' && c != '.' && c != '_') return bad("only letters, digits, '-', '.' and '_' are allowed");
  }
  if (!is_alnum(bucket.front()) || !is_alnum(bucket.back())) return bad("it must begin and end with a letter or digit");
  if (bucket.find("..") != std::string::npos) return bad("two dots in a row are not allowed");
  if (is_ip(bucket)) return bad("it looks like an IP address");
  return {};
}

// A bucket that can be a label of a host name, and of a certificate for *.host.
bool fits_host_name(const std::string& bucket) {
  return bucket.size() <= 63 &&
         std::none_of(bucket.begin(), bucket.end(), [](char c) { return c == '.' || c == '_' || (c >= 'A' && c <= 'Z'); });
}

struct Endpoint {
  bool tls = true;
  std::string host;
  std::string port;
};

Result<Endpoint> parse_endpoint(const std::string& text) {
  const auto bad = [&](std::string_view why) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("endpoint '{}': {}", text, why));
  };
  Endpoint out;
  const std::string lower = net::lower_ascii(text);
  if (lower.starts_with("http://")) {
    out.tls = false;
  } else if (!lower.starts_with("https://")) {
    return bad("it must begin with http:// or https://");
  }
  std::string rest = lower.substr(out.tls ? 8 : 7);
  while (!rest.empty() && rest.back() == '/') rest.pop_back();
  if (rest.find('@') != std::string::npos) return bad("it must not hold a user name or password");
  if (rest.find_first_of("/?#") != std::string::npos) return bad("a path is not supported: give scheme, host and port only");
  const std::size_t colon = rest.find(':', rest.starts_with('[') ? std::min(rest.find(']'), rest.size()) : 0);
  out.host = rest.substr(0, colon);
  if (colon != std::string::npos) {
    const std::string digits = rest.substr(colon + 1);
    unsigned port = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size() || port == 0 || port > 65535) {
      return bad("the port must be a number from 1 to 65535");
    }
    if (port != (out.tls ? 443U : 80U)) out.port = fmt::format(":{}", port);
  }
  const bool is_v6 = out.host.starts_with('[');
  if (is_v6 && (out.host.back() != ']' || !is_ip(out.host))) return bad("the IPv6 address is malformed");
  for (const char c : out.host) {
    if (!is_v6 && !is_alnum(c) && c != '-' && c != '.' && c != '_') return bad(fmt::format("'{}' is not a host name", out.host));
  }
  if (out.host.empty()) return bad("the host name is missing");
  return out;
}

// "s3.eu-west-1.amazonaws.com" -> label, region and suffix; false when the host is not Amazon's S3.
bool split_aws_host(std::string_view host, std::string& label, std::string& region, std::string& suffix) {
  for (const std::string_view end : {"amazonaws.com", "amazonaws.com.cn"}) {
    if (!host.ends_with(end) || host.size() <= end.size() + 1) continue;
    std::string_view front = host.substr(0, host.size() - end.size() - 1);
    for (const std::string_view name : {"s3.dualstack", "s3-fips", "s3"}) {
      const bool bare = front == name;
      const bool with_region =
          front.size() > name.size() + 1 && front.starts_with(name) && (front[name.size()] == '.' || front[name.size()] == '-');
      if (!bare && !with_region) continue;
      const std::string_view found = bare ? std::string_view() : front.substr(name.size() + 1);
      if (found.find('.') != std::string_view::npos) continue;
      label = name;
      region = found == "external-1" ? std::string_view("us-east-1") : found;  // the oldest name of us-east-1
      suffix = end;
      return true;
    }
  }
  return false;
}

}  // namespace

Result<S3Address> S3Address::make(const S3Options& options) {
  TRY(check_bucket(options.bucket));
  for (const char c : options.region) {
    if (!is_alnum(c) && c != '-' && c != '_')
      return fail(ErrorCode::kInvalidArgument, fmt::format("'{}' is not a region name", options.region));
  }
  S3Address address;
  address.bucket_ = options.bucket;
  address.region_ = options.region;
  if (options.endpoint.empty()) {
    address.is_aws_ = true;
    address.aws_label_ = "s3";
    address.host_ = options.region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  } else {
    TRY_ASSIGN(const auto endpoint, parse_endpoint(options.endpoint));
    address.tls_ = endpoint.tls;
    address.port_ = endpoint.port;
    address.host_ = endpoint.host;
    std::string region;
    if (endpoint.port.empty() && split_aws_host(endpoint.host, address.aws_label_, region, address.host_)) {
      address.is_aws_ = true;
      if (address.region_.empty()) address.region_ = region;
    }
  }
  if (address.region_.empty()) address.region_ = "us-east-1";
  const bool possible = fits_host_name(options.bucket) && !is_ip(address.host_);
  if (options.addressing == Addressing::kVirtualHost && !possible) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("bucket '{}' cannot be part of the host name of '{}': use path-style addressing", options.bucket,
                            options.endpoint));
  }
  address.virtual_host_ =
      options.addressing == Addressing::kVirtualHost || (options.addressing == Addressing::kAuto && address.is_aws_ && possible);
  return address;
}

std::string S3Address::host(const std::string& region) const {
  const std::string base = is_aws_ ? aws_label_ + '.' + region + '.' + host_ : host_ + port_;
  return virtual_host_ ? bucket_ + '.' + base : base;
}

std::string S3Address::path(std::string_view key) const {
  std::string path = "/";
  if (!virtual_host_) {
    path += net::uri_encode(bucket_, false);
    if (!key.empty()) path += '/';
  }
  return path + net::uri_encode(key, true);
}

std::string S3Address::id() const { return fmt::format("s3://{}{}/{}", is_aws_ ? "s3." + host_ : host_, port_, bucket_); }

}  // namespace thermo::store
