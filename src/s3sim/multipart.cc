// Multipart uploads (memory mode).

#include <charconv>

#include "net/sigv4.h"
#include "s3sim/checksum.h"
#include "s3sim/conditional.h"
#include "s3sim/simulator.h"
#include "s3sim/xml.h"

namespace thermo::s3sim {
namespace {

constexpr std::string_view kHead = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
constexpr std::string_view kSpace = " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"";

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

const std::string& upload_id(const Call& call) { return *call.request.param("uploadId"); }

S3Result<int> part_number(const Call& call) {
  const auto* text = call.request.param("partNumber");
  int number = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), number);
  if (number < 1 || number > 10'000)
    return refuse(400, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive");
  return number;
}

}  // namespace

S3Result<Answer> Simulator::create_upload(Call& call) {
  if (!backend_->has_bucket(call.request.bucket)) return tl::unexpected<S3Error>(no_such_bucket(call.request.bucket));
  Upload upload;
  upload.bucket = call.request.bucket;
  upload.key = call.request.key;
  if (const auto* type = call.header("content-type")) upload.content_type = *type;
  upload.metadata = kept_headers(call.exchange.request());
  Answer answer;
  if (const auto* algorithm = call.header("x-amz-checksum-algorithm")) {
    upload.algorithm = lower(*algorithm);
    if (!checksum(upload.algorithm, "")) return refuse(400, "InvalidRequest", "Checksum algorithm provided is unsupported.");
    const auto* type = call.header("x-amz-checksum-type");
    upload.checksum_type = type ? *type : upload.algorithm == "crc64nvme" ? "FULL_OBJECT" : "COMPOSITE";
  }
  const std::string algorithm = upload.algorithm, checksum_type = upload.checksum_type;
  const std::string id = uploads_.create(std::move(upload));
  answer = Answer::xml(200, fmt::format("{}<InitiateMultipartUploadResult{}>{}{}{}</InitiateMultipartUploadResult>", kHead,
                                        kSpace, xml_element("Bucket", call.request.bucket), xml_element("Key", call.request.key),
                                        xml_element("UploadId", id)));
  if (!algorithm.empty()) {
    answer.headers.emplace_back("x-amz-checksum-algorithm", algorithm);
    answer.headers.emplace_back("x-amz-checksum-type", checksum_type);
  }
  return answer;
}

S3Result<Answer> Simulator::upload_part(Call& call) {
  const auto number = part_number(call);
  if (!number) return tl::unexpected<S3Error>(number.error());
  if (auto known = uploads_.find(upload_id(call), call.request.key); !known)
    return tl::unexpected<S3Error>(std::move(known).error());
  const bool copy = call.request.op == Op::kPartCopy;
  Part part;
  if (copy) {
    auto source = copy_source(call);
    if (!source) return tl::unexpected<S3Error>(std::move(source).error());
    if (!(*source)->data) return refuse(501, "NotImplemented", "UploadPartCopy is served in memory mode only");
    ByteSpan span{0, (*source)->size, false};
    if (const auto* range = call.header("x-amz-copy-source-range")) {
      const auto resolved = resolve_range(*range, (*source)->size);
      if (!resolved || !resolved->partial)
        return refuse(400, "InvalidArgument", "The x-amz-copy-source-range value must be of the form bytes=first-last");
      span = *resolved;
    }
    part.data = std::make_shared<const std::string>((*source)->data->substr(span.offset, span.length));
  } else {
    S3_TRY(receive_body(call));
    part.data = std::make_shared<const std::string>(std::move(call.body));
    part.checksums = call.checksums;
  }
  part.md5 = md5(*part.data);
  const std::string etag = "\"" + hex(part.md5) + "\"";
  S3_TRY(uploads_.add_part(upload_id(call), call.request.key, *number, std::move(part)));
  if (copy) {
    return Answer::xml(200, fmt::format("{}<CopyPartResult{}>{}{}</CopyPartResult>", kHead, kSpace,
                                        xml_element("LastModified", iso_time(wall(call))), xml_element("ETag", etag)));
  }
  Answer answer = Answer::empty(200);
  answer.headers.emplace_back("ETag", etag);
  for (const auto& one : call.checksums) answer.headers.push_back(one);
  return answer;
}

S3Result<Answer> Simulator::complete_upload(Call& call) {
  const auto condition = write_condition(call.exchange.request());
  if (!condition) return tl::unexpected<S3Error>(condition.error());
  S3_TRY(receive_body(call));
  auto upload = uploads_.find(upload_id(call), call.request.key);
  if (!upload) return tl::unexpected<S3Error>(std::move(upload).error());
  std::vector<WantedPart> wanted;
  for (const auto part : xml_inner(call.body, "Part")) {
    WantedPart want;
    const std::string number = xml_text(part, "PartNumber").value_or("0");
    std::from_chars(number.data(), number.data() + number.size(), want.number);
    want.etag = xml_text(part, "ETag").value_or("");
    wanted.push_back(std::move(want));
  }
  auto object = join_parts(*upload, wanted);
  if (!object) return tl::unexpected<S3Error>(std::move(object).error());
  auto stored = backend_->put(call.request.bucket, call.request.key, std::move(*object), *condition);
  if (!stored) return tl::unexpected<S3Error>(std::move(stored).error());
  // Somebody may have completed it at the same time: both wrote the same object.
  (void)uploads_.remove(upload_id(call), call.request.key);
  return Answer::xml(200, fmt::format("{}<CompleteMultipartUploadResult{}>{}{}{}</CompleteMultipartUploadResult>", kHead, kSpace,
                                      xml_element("Bucket", call.request.bucket), xml_element("Key", call.request.key),
                                      xml_element("ETag", (*stored)->etag)));
}

S3Result<Answer> Simulator::abort_upload(Call& call) {
  S3_TRY(uploads_.remove(upload_id(call), call.request.key));
  return Answer::empty(204);
}

S3Result<Answer> Simulator::list_parts(Call& call) {
  auto upload = uploads_.find(upload_id(call), call.request.key);
  if (!upload) return tl::unexpected<S3Error>(std::move(upload).error());
  std::string out = fmt::format("{}<ListPartsResult{}>{}{}{}<IsTruncated>false</IsTruncated>", kHead, kSpace,
                                xml_element("Bucket", call.request.bucket), xml_element("Key", call.request.key),
                                xml_element("UploadId", upload_id(call)));
  for (const auto& [number, part] : upload->parts) {
    out += "<Part>" + xml_element("PartNumber", std::to_string(number)) + xml_element("LastModified", iso_time(part.modified)) +
           xml_element("ETag", "\"" + hex(part.md5) + "\"") + xml_element("Size", std::to_string(part.data->size())) + "</Part>";
  }
  return Answer::xml(200, out + "</ListPartsResult>");
}

S3Result<Answer> Simulator::list_uploads(Call& call) {
  if (!backend_->has_bucket(call.request.bucket)) return tl::unexpected<S3Error>(no_such_bucket(call.request.bucket));
  const auto* prefix = call.request.param("prefix");
  std::string out = fmt::format("{}<ListMultipartUploadsResult{}>{}<IsTruncated>false</IsTruncated>", kHead, kSpace,
                                xml_element("Bucket", call.request.bucket));
  for (const auto& [id, upload] : uploads_.of_bucket(call.request.bucket)) {
    if (prefix && !upload.key.starts_with(*prefix)) continue;
    out += "<Upload>" + xml_element("Key", upload.key) + xml_element("UploadId", id) +
           xml_element("Initiated", iso_time(upload.created)) + "<StorageClass>STANDARD</StorageClass></Upload>";
  }
  return Answer::xml(200, out + "</ListMultipartUploadsResult>");
}

}  // namespace thermo::s3sim
