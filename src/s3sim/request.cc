#include "s3sim/request.h"

#include <array>

#include "net/sigv4.h"

namespace thermo::s3sim {
namespace {

/// Parameters that make a request about something else than the object or the listing. What of them is not served answers 501.
constexpr std::array<std::string_view, 24> kForeignSubresources{
    "acl",         "tagging",           "versions",          "versioning", "policy",     "policyStatus",
    "cors",        "lifecycle",         "encryption",        "website",    "logging",    "notification",
    "replication", "requestPayment",    "accelerate",        "analytics",  "inventory",  "metrics",
    "object-lock", "ownershipControls", "publicAccessBlock", "torrent",    "attributes", "retention"};

/// The bucket that a Host names by its first label: the rest must be a name, so that 10.0.0.1 is no bucket "10".
std::optional<std::string> host_bucket(std::string_view host) {
  host = host.substr(0, host.rfind(':'));
  const std::size_t dot = host.find('.');
  if (dot == std::string_view::npos || dot == 0) {
    return std::nullopt;
  }
  if (host.find_first_not_of("0123456789.") == std::string_view::npos) return std::nullopt;
  return std::string(host.substr(0, dot));
}

Op object_op(std::string_view method, const net::ServerRequest& http, const S3Request& request) {
  const bool upload = request.param("uploadId") != nullptr;
  if (method == "GET") return upload ? Op::kListParts : Op::kGet;
  if (method == "HEAD") return Op::kHead;
  if (method == "DELETE") return upload ? Op::kAbort : Op::kDelete;
  if (method == "POST") return request.param("uploads") ? Op::kCreateUpload : upload ? Op::kComplete : Op::kUnsupported;
  if (method != "PUT") return Op::kUnsupported;
  const bool copy = http.header("x-amz-copy-source") != nullptr;
  if (upload) return copy ? Op::kPartCopy : Op::kPart;
  return copy ? Op::kCopy : Op::kPut;
}

Op bucket_op(std::string_view method, const S3Request& request) {
  if (method == "GET")
    return request.param("location") ? Op::kBucketInfo : request.param("uploads") ? Op::kListUploads : Op::kList;
  if (method == "HEAD") return Op::kHeadBucket;
  if (method == "PUT") return Op::kCreateBucket;
  if (method == "DELETE") return Op::kDeleteBucket;
  if (method == "POST" && request.param("delete")) return Op::kDeleteMany;
  return Op::kUnsupported;
}

S3Error invalid_uri() { return {400, "InvalidURI", "Couldn't parse the specified URI."}; }

}  // namespace

std::string_view to_string(Op op) {
  static constexpr std::array<std::string_view, kOps> kNames{
      "GET",           "HEAD",        "LIST",        "PUT",           "DELETE",        "DELETE_MANY", "COPY",
      "CREATE_UPLOAD", "PART",        "PART_COPY",   "COMPLETE",      "ABORT",         "LIST_PARTS",  "LIST_UPLOADS",
      "LIST_BUCKETS",  "HEAD_BUCKET", "BUCKET_INFO", "CREATE_BUCKET", "DELETE_BUCKET", "OTHER"};
  return kNames[static_cast<std::size_t>(op)];
}

const std::string* S3Request::param(std::string_view name) const {
  for (const auto& [key_name, value] : query) {
    if (key_name == name) return &value;
  }
  return nullptr;
}

S3Result<S3Request> parse_s3_request(const net::ServerRequest& http, const std::function<bool(const std::string&)>& has_bucket) {
  S3Request request;
  std::string_view target = http.target;
  if (target.starts_with("http://") || target.starts_with("https://")) {
    const std::size_t slash = target.find('/', target.find("://") + 3);
    target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
  }
  const std::size_t question = target.find('?');
  request.path = std::string(target.substr(0, question));
  if (!request.path.starts_with('/')) return tl::unexpected<S3Error>(invalid_uri());

  std::string_view rest = question == std::string_view::npos ? std::string_view() : target.substr(question + 1);
  while (!rest.empty()) {
    const std::size_t amp = rest.find('&');
    const std::string_view one = rest.substr(0, amp);
    rest = amp == std::string_view::npos ? std::string_view() : rest.substr(amp + 1);
    if (one.empty()) continue;
    const std::size_t equals = one.find('=');
    auto name = net::uri_decode(one.substr(0, equals), true);
    auto value = net::uri_decode(equals == std::string_view::npos ? std::string_view() : one.substr(equals + 1), true);
    if (!name || !value) return tl::unexpected<S3Error>(invalid_uri());
    request.query.emplace_back(std::move(*name), std::move(*value));
  }

  auto path = net::uri_decode(std::string_view(request.path).substr(1));
  if (!path) return tl::unexpected<S3Error>(invalid_uri());
  const std::string* host = http.header("host");
  const auto virtual_bucket = host ? host_bucket(*host) : std::nullopt;
  if (virtual_bucket && has_bucket(*virtual_bucket)) {
    request.bucket = *virtual_bucket;
    request.key = std::move(*path);
  } else {
    const std::size_t slash = path->find('/');
    request.bucket = path->substr(0, slash);
    if (slash != std::string::npos) request.key = path->substr(slash + 1);
  }

  for (const auto subresource : kForeignSubresources) {
    if (request.param(subresource)) return request;  // kUnsupported
  }
  if (request.bucket.empty()) {
    if (http.method == "GET") request.op = Op::kListBuckets;
  } else {
    request.op = request.key.empty() ? bucket_op(http.method, request) : object_op(http.method, http, request);
  }
  return request;
}

}  // namespace thermo::s3sim
