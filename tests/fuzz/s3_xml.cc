// Answers of an S3 store: list pages, errors, results of batch deletes. And the documents that we write.

#include <algorithm>

#include "fuzz/fuzz.h"
#include "net/sigv4.h"
#include "s3sim/xml.h"
#include "store/s3/s3_error.h"
#include "store/s3/s3_xml.h"

namespace thermo::fuzz {
namespace {

/// The page as a store would send it; read back it must be the same.
std::string document_of(const store::ListPage& page) {
  std::string out = "<ListBucketResult><EncodingType>url</EncodingType>";
  out += s3sim::xml_element("IsTruncated", page.truncated ? "true" : "false");
  if (page.truncated) out += s3sim::xml_element("NextContinuationToken", page.continuation);
  for (const auto& object : page.objects) {
    out += "<Contents>" + s3sim::xml_element("Key", net::uri_encode(object.key, true)) +
           s3sim::xml_element("Size", std::to_string(object.size)) + s3sim::xml_element("ETag", object.etag) +
           s3sim::xml_element("StorageClass", object.storage_class) + "</Contents>";
  }
  for (const auto& prefix : page.prefixes) {
    out += "<CommonPrefixes>" + s3sim::xml_element("Prefix", net::uri_encode(prefix, true)) + "</CommonPrefixes>";
  }
  return out + "</ListBucketResult>";
}

bool same(const store::ObjectInfo& a, const store::ObjectInfo& b) {
  return a.key == b.key && a.size == b.size && a.etag == b.etag && a.storage_class == b.storage_class;
}

void check_page(std::string_view xml) {
  const auto page = store::parse_list_page(xml);
  if (!page) {
    FUZZ_CHECK(page.error().code() == ErrorCode::kCorrupt);
    return;
  }
  FUZZ_CHECK(std::is_sorted(page->prefixes.begin(), page->prefixes.end()));
  FUZZ_CHECK(
      std::is_sorted(page->objects.begin(), page->objects.end(), [](const auto& a, const auto& b) { return a.key < b.key; }));
  FUZZ_CHECK(page->truncated == !page->continuation.empty());
  for (const auto& object : page->objects) FUZZ_CHECK(!object.key.empty());
  // What the writer cannot carry: text that no XML parser would have let through or that is cut by the reader.
  const auto carried = [](std::string_view text) { return store::fits_xml(text); };
  if (!carried(page->continuation)) return;
  for (const auto& object : page->objects) {
    if (!carried(object.etag) || !carried(object.storage_class)) return;
  }
  const auto again = store::parse_list_page(document_of(*page));
  FUZZ_CHECK(again && again->truncated == page->truncated && again->continuation == page->continuation);
  FUZZ_CHECK(again->prefixes == page->prefixes);
  FUZZ_CHECK(std::equal(page->objects.begin(), page->objects.end(), again->objects.begin(), again->objects.end(), same));
}

void check_delete_document(std::string_view text) {
  std::vector<std::string> keys;
  for (Input input(text); !input.empty();) {
    const auto key = input.until('\0');
    if (!key.empty() && store::fits_xml(key)) keys.emplace_back(key);
  }
  const auto document = store::delete_document(keys);
  const auto objects = s3sim::xml_inner(document, "Object");
  FUZZ_CHECK(objects.size() == keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) FUZZ_CHECK(s3sim::xml_text(objects[i], "Key") == keys[i]);
}

}  // namespace
}  // namespace thermo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thermo;
  const auto text = fuzz::text_of(data, size);
  fuzz::check_page(text);
  fuzz::check_delete_document(text);
  (void)store::parse_delete_result(text);
  net::HttpResponse answer;
  answer.status = 400;
  answer.body = text;
  const auto error = store::to_error(store::parse_failure(answer), "GET 'k' of bucket 'b'");
  FUZZ_CHECK(error.http_status() == 400 && error.message().starts_with("GET 'k'"));
  FUZZ_CHECK(s3sim::xml_text(s3sim::xml_element("E", text), "E") == text);
  for (const auto inner : s3sim::xml_inner(text, "Part")) (void)s3sim::xml_text(inner, "ETag");
  return 0;
}
