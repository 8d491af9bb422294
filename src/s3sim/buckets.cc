// Buckets and their listings.

#include <charconv>

#include "net/sigv4.h"
#include "s3sim/simulator.h"
#include "s3sim/xml.h"

namespace thermo::s3sim {
namespace {

constexpr std::string_view kOwner = "<Owner><ID>s3sim</ID><DisplayName>s3sim</DisplayName></Owner>";
constexpr std::uint32_t kMaxKeys = 1000;

/// The text of a name in a listing: with encoding-type=url as S3 does it, a blank as '+'.
class Names {
 public:
  explicit Names(bool url) : url_(url) {}
  [[nodiscard]] std::string element(std::string_view tag, std::string_view name) const {
    if (!url_) return xml_element(tag, name);
    std::string encoded;
    for (const char c : net::uri_encode(name, true)) encoded += c;
    for (std::size_t at = 0; (at = encoded.find("%20", at)) != std::string::npos;) encoded.replace(at, 3, "+");
    return xml_element(tag, encoded);
  }

 private:
  const bool url_;
};

/// Continuation tokens are opaque to clients: nobody shall think that one is a key.
std::string make_token(std::string_view key) {
  std::string token = "s3sim1-";
  for (const char c : key) token += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return token;
}

std::optional<std::string> read_token(std::string_view token) {
  if (!token.starts_with("s3sim1-")) return std::nullopt;
  token.remove_prefix(7);
  if (token.empty() || token.size() % 2 != 0) return std::nullopt;
  std::string key;
  for (std::size_t at = 0; at < token.size(); at += 2) {
    unsigned value = 0;
    if (std::from_chars(token.data() + at, token.data() + at + 2, value, 16).ptr != token.data() + at + 2) return std::nullopt;
    key += static_cast<char>(value);
  }
  return key;
}

S3Error invalid_argument(std::string_view name, std::string_view value, std::string message) {
  return {400,
          "InvalidArgument",
          std::move(message),
          {},
          {{"ArgumentName", std::string(name)}, {"ArgumentValue", std::string(value)}}};
}

std::string value_or(const S3Request& request, std::string_view name) {
  const auto* value = request.param(name);
  return value ? *value : std::string();
}

S3Result<std::uint32_t> max_keys(const S3Request& request) {
  const auto* text = request.param("max-keys");
  if (!text || text->empty()) return kMaxKeys;
  std::uint32_t value = 0;
  const auto [ptr, ec] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (ec != std::errc() || ptr != text->data() + text->size() || value > INT32_MAX)
    return tl::unexpected<S3Error>(
        invalid_argument("maxKeys", *text, "Provided max-keys not an integer or within integer range"));
  return std::min(value, kMaxKeys);
}

std::string entry(const ListItem& item, const Names& names, bool owner) {
  std::string out = "<Contents>" + names.element("Key", item.name) +
                    xml_element("LastModified", iso_time(item.object->modified)) + xml_element("ETag", item.object->etag) +
                    xml_element("Size", std::to_string(item.object->size));
  if (owner) out += kOwner;
  return out + "<StorageClass>STANDARD</StorageClass></Contents>";
}

}  // namespace

S3Result<Answer> Simulator::list_objects(Call& call, Nanos stale_by) {
  const S3Request& request = call.request;
  const bool v2 = value_or(request, "list-type") == "2";
  ListQuery query;
  query.prefix = value_or(request, "prefix");
  query.delimiter = value_or(request, "delimiter");
  query.after = value_or(request, v2 ? "start-after" : "marker");
  query.marker_covers_prefix = !v2;
  const auto max = max_keys(request);
  if (!max) return tl::unexpected<S3Error>(max.error());
  query.max_keys = *max;
  const auto* token = v2 ? request.param("continuation-token") : nullptr;
  if (token) {
    const auto from = read_token(*token);
    if (!from)
      return tl::unexpected<S3Error>(
          invalid_argument("continuation-token", *token, "The continuation token provided is incorrect"));
    query.from = *from;
  }
  const std::string encoding = value_or(request, "encoding-type");
  if (!encoding.empty() && encoding != "url")
    return tl::unexpected<S3Error>(invalid_argument("encoding-type", encoding, "Invalid Encoding Method specified in Request"));
  const Names names(encoding == "url");
  const bool owner = !v2 || value_or(request, "fetch-owner") == "true";

  auto listed = backend_->list(request.bucket, query, stale_by);
  if (!listed) return tl::unexpected<S3Error>(std::move(listed).error());
  const ListPage& page = *listed;

  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  out += xml_element("Name", request.bucket) + names.element("Prefix", query.prefix);
  if (!v2) out += names.element("Marker", query.after);
  if (v2 && token) out += xml_element("ContinuationToken", *token);
  if (v2 && !query.after.empty()) out += names.element("StartAfter", query.after);
  if (v2) out += xml_element("KeyCount", std::to_string(page.items.size()));
  out += xml_element("MaxKeys", std::to_string(query.max_keys));
  if (!query.delimiter.empty()) out += names.element("Delimiter", query.delimiter);
  if (!encoding.empty()) out += "<EncodingType>url</EncodingType>";
  out += page.truncated ? "<IsTruncated>true</IsTruncated>" : "<IsTruncated>false</IsTruncated>";
  if (page.truncated && v2) out += xml_element("NextContinuationToken", make_token(page.next));
  // Version 1 names the next marker only with a delimiter; without one it is the last key.
  if (page.truncated && !v2 && !query.delimiter.empty()) out += names.element("NextMarker", page.items.back().name);
  for (const auto& item : page.items) {
    if (item.object) out += entry(item, names, owner);
  }
  for (const auto& item : page.items) {
    if (!item.object) out += "<CommonPrefixes>" + names.element("Prefix", item.name) + "</CommonPrefixes>";
  }
  return Answer::xml(200, out + "</ListBucketResult>");
}

S3Result<Answer> Simulator::list_buckets() {
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListAllMyBucketsResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  out += kOwner;
  out += "<Buckets>";
  for (const auto& bucket : backend_->buckets()) {
    out += "<Bucket>" + xml_element("Name", bucket.name) + xml_element("CreationDate", iso_time(bucket.created)) + "</Bucket>";
  }
  return Answer::xml(200, out + "</Buckets></ListAllMyBucketsResult>");
}

S3Result<Answer> Simulator::bucket_op(Call& call) {
  const std::string& bucket = call.request.bucket;
  if (call.request.op == Op::kCreateBucket) {
    if (call.exchange.request().content_length > 0 || call.exchange.request().chunked) S3_TRY(receive_body(call));
    S3_TRY(backend_->create_bucket(bucket));
    Answer answer = Answer::empty(200);
    answer.headers.emplace_back("Location", "/" + bucket);
    return answer;
  }
  if (call.request.op == Op::kDeleteBucket) {
    S3_TRY(backend_->remove_bucket(bucket));
    return Answer::empty(204);
  }
  if (!backend_->has_bucket(bucket)) return tl::unexpected<S3Error>(no_such_bucket(bucket));
  if (call.request.op == Op::kHeadBucket) {
    Answer answer = Answer::empty(200);
    answer.headers.emplace_back("x-amz-bucket-region", region());
    return answer;
  }
  // The oldest region has no name of its own here.
  const std::string where = region() == "us-east-1" ? std::string() : region();
  return Answer::xml(
      200, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<LocationConstraint xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" +
               xml_escape(where) + "</LocationConstraint>");
}

}  // namespace thermo::s3sim
