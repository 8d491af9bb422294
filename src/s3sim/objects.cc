// Single objects: GET, HEAD, PUT, DELETE, copy.

#include <algorithm>

#include "net/sigv4.h"
#include "s3sim/checksum.h"
#include "s3sim/conditional.h"
#include "s3sim/simulator.h"
#include "s3sim/xml.h"

namespace thermo::s3sim {
namespace {

constexpr std::size_t kMaxKey = 1024;
constexpr std::size_t kMaxDeletes = 1000;

void add_object_headers(const Object& object, Headers& headers) {
  headers.emplace_back("ETag", object.etag);
  headers.emplace_back("Last-Modified", http_time(object.modified));
}

void add_checksums(const Object& object, Headers& headers) {
  for (const auto& one : object.checksums) headers.push_back(one);
  if (!object.checksums.empty()) headers.emplace_back("x-amz-checksum-type", object.checksum_type);
}

/// All of a stored object but its bytes.
Object new_object(const Call& call) {
  Object object;
  object.etag = "\"" + hex(md5(call.body)) + "\"";
  object.checksums = call.checksums;
  object.checksum_type = call.checksums.empty() ? "" : "FULL_OBJECT";
  if (const auto* type = call.header("content-type")) object.content_type = *type;
  object.metadata = kept_headers(call.exchange.request());
  return object;
}

}  // namespace

Headers kept_headers(const net::ServerRequest& request) {
  Headers kept;
  for (const auto& [name, value] : request.headers) {
    if (name.starts_with("x-amz-meta-") || name == "cache-control" || name == "content-disposition" ||
        name == "content-language" || name == "expires" || name == "x-amz-website-redirect-location")
      kept.emplace_back(name, value);
    if (name == "x-amz-storage-class" && value != "STANDARD") kept.emplace_back(name, value);
    if (name != "content-encoding") continue;
    // aws-chunked names the framing of the upload, it is no property of the object.
    std::string rest;
    std::string_view list = value;
    while (!list.empty()) {
      const std::size_t comma = list.find(',');
      std::string_view one = list.substr(0, comma);
      while (one.starts_with(' ')) one.remove_prefix(1);
      while (one.ends_with(' ')) one.remove_suffix(1);
      if (!one.empty() && one != "aws-chunked") rest += (rest.empty() ? "" : ",") + std::string(one);
      list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    }
    if (!rest.empty()) kept.emplace_back(name, rest);
  }
  return kept;
}

S3Result<WriteCondition> write_condition(const net::ServerRequest& request) {
  WriteCondition condition;
  if (const auto* tag = request.header("if-match")) condition.if_match = *tag;
  if (const auto* tag = request.header("if-none-match")) {
    if (*tag != "*")
      return refuse(501, "NotImplemented",
                    "A header you provided implies functionality that is not implemented: If-None-Match of an ETag");
    condition.if_absent = true;
  }
  return condition;
}

S3Result<Answer> Simulator::get_object(Call& call) {
  const bool is_head = call.request.op == Op::kHead;
  auto found = backend_->find(call.request.bucket, call.request.key, !is_head);
  if (!found) return tl::unexpected<S3Error>(std::move(found).error());
  const ObjectPtr object = *found;
  switch (check_read(call.exchange.request(), *object)) {
    case Condition::kFailed:
      return refuse(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold");
    case Condition::kNotModified: {
      Answer answer = Answer::empty(304);
      add_object_headers(*object, answer.headers);
      return answer;
    }
    case Condition::kProceed: break;
  }
  ByteSpan span{0, object->size, false};
  if (const auto* range = call.header("range")) {
    const auto resolved = resolve_range(*range, object->size);
    if (!resolved) {
      S3Error error{416, "InvalidRange", "The requested range is not satisfiable"};
      error.headers.emplace_back("Content-Range", fmt::format("bytes */{}", object->size));
      error.fields = {{"RangeRequested", *range}, {"ActualObjectSize", std::to_string(object->size)}};
      return tl::unexpected<S3Error>(std::move(error));
    }
    span = *resolved;
  }
  Answer answer;
  answer.status = span.partial ? 206 : 200;
  add_object_headers(*object, answer.headers);
  answer.headers.emplace_back("Accept-Ranges", "bytes");
  const auto* type = call.request.param("response-content-type");
  answer.headers.emplace_back("Content-Type", type                           ? *type
                                              : object->content_type.empty() ? "binary/octet-stream"
                                                                             : object->content_type);
  for (const auto& one : object->metadata) answer.headers.push_back(one);
  if (span.partial) {
    answer.headers.emplace_back("Content-Range",
                                fmt::format("bytes {}-{}/{}", span.offset, span.offset + span.length - 1, object->size));
  } else if (const auto* mode = call.header("x-amz-checksum-mode"); mode && (*mode == "ENABLED" || *mode == "enabled")) {
    add_checksums(*object, answer.headers);
  }
  answer.length = static_cast<std::int64_t>(span.length);
  if (!is_head) answer.body = object_body(object, span.offset, span.length);
  return answer;
}

S3Result<Answer> Simulator::put_object(Call& call) {
  if (call.request.key.size() > kMaxKey) return refuse(400, "KeyTooLongError", "Your key is too long");
  if (!backend_->has_bucket(call.request.bucket)) return tl::unexpected<S3Error>(no_such_bucket(call.request.bucket));
  const auto condition = write_condition(call.exchange.request());
  if (!condition) return tl::unexpected<S3Error>(condition.error());
  S3_TRY(receive_body(call));
  Object object = new_object(call);
  object.data = std::make_shared<const std::string>(std::move(call.body));
  auto stored = backend_->put(call.request.bucket, call.request.key, std::move(object), *condition);
  if (!stored) return tl::unexpected<S3Error>(std::move(stored).error());
  Answer answer = Answer::empty(200);
  answer.headers.emplace_back("ETag", (*stored)->etag);
  add_checksums(**stored, answer.headers);
  return answer;
}

S3Result<Answer> Simulator::delete_object(Call& call) {
  const auto condition = write_condition(call.exchange.request());
  if (!condition) return tl::unexpected<S3Error>(condition.error());
  S3_TRY(backend_->remove(call.request.bucket, call.request.key, *condition));
  return Answer::empty(204);
}

S3Result<Answer> Simulator::delete_many(Call& call) {
  if (!backend_->has_bucket(call.request.bucket)) return tl::unexpected<S3Error>(no_such_bucket(call.request.bucket));
  S3_TRY(receive_body(call));
  if (!call.header("content-md5") && call.checksums.empty())
    return refuse(400, "InvalidRequest", "Missing required header for this request: Content-MD5 OR x-amz-checksum-*");
  const auto objects = xml_inner(call.body, "Object");
  if (objects.empty() || objects.size() > kMaxDeletes)
    return refuse(400, "MalformedXML",
                  "The XML you provided was not well-formed or did not validate against our published schema");
  const bool quiet = xml_text(call.body, "Quiet").value_or("false") == "true";
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<DeleteResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (const auto one : objects) {
    const std::string key = xml_text(one, "Key").value_or("");
    WriteCondition condition;
    condition.if_match = xml_text(one, "ETag").value_or("");
    if (auto done = backend_->remove(call.request.bucket, key, condition); !done) {
      out += "<Error>" + xml_element("Key", key) + xml_element("Code", done.error().code) +
             xml_element("Message", done.error().message) + "</Error>";
    } else if (!quiet) {
      out += "<Deleted>" + xml_element("Key", key) + "</Deleted>";
    }
  }
  return Answer::xml(200, out + "</DeleteResult>");
}

S3Result<ObjectPtr> Simulator::copy_source(Call& call) {
  auto source = net::uri_decode(*call.header("x-amz-copy-source"));
  if (!source)
    return refuse(400, "InvalidArgument", "Copy Source must mention the source bucket and key: sourcebucket/sourcekey");
  std::string_view path = *source;
  if (path.starts_with('/')) path.remove_prefix(1);
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos || slash + 1 == path.size())
    return refuse(400, "InvalidArgument", "Copy Source must mention the source bucket and key: sourcebucket/sourcekey");
  auto found = backend_->find(std::string(path.substr(0, slash)), std::string(path.substr(slash + 1)), true);
  if (!found) return found;
  const auto* match = call.header("x-amz-copy-source-if-match");
  const auto* none = call.header("x-amz-copy-source-if-none-match");
  if ((match && !etag_matches(*match, (*found)->etag)) || (none && etag_matches(*none, (*found)->etag)))
    return refuse(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold");
  return found;
}

S3Result<Answer> Simulator::copy_object(Call& call) {
  auto source = copy_source(call);
  if (!source) return tl::unexpected<S3Error>(std::move(source).error());
  const auto condition = write_condition(call.exchange.request());
  if (!condition) return tl::unexpected<S3Error>(condition.error());
  Object object = **source;
  if (!object.data) return refuse(501, "NotImplemented", "CopyObject is served in memory mode only");
  object.etag = "\"" + hex(md5(*object.data)) + "\"";
  if (const auto* directive = call.header("x-amz-metadata-directive"); directive && *directive == "REPLACE") {
    object.metadata = kept_headers(call.exchange.request());
    const auto* type = call.header("content-type");
    object.content_type = type ? *type : "";
  }
  auto stored = backend_->put(call.request.bucket, call.request.key, std::move(object), *condition);
  if (!stored) return tl::unexpected<S3Error>(std::move(stored).error());
  return Answer::xml(
      200, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<CopyObjectResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" +
               xml_element("LastModified", iso_time((*stored)->modified)) + xml_element("ETag", (*stored)->etag) +
               "</CopyObjectResult>");
}

}  // namespace thermo::s3sim
