#include "store/s3/s3_xml.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <pugixml.hpp>

#include "net/sigv4.h"
#include "store/s3/s3_dates.h"

namespace thermo::store {
namespace {

constexpr std::size_t kMaxDocument = 16U << 20U;
// Without end-of-line conversion: a key may hold CR LF. White space alone is a value too.
constexpr unsigned kParse = pugi::parse_cdata | pugi::parse_escapes | pugi::parse_ws_pcdata_single;

bool load(std::string_view xml, pugi::xml_document& document) {
  if (xml.size() > kMaxDocument) return false;
  return static_cast<bool>(document.load_buffer(xml.data(), xml.size(), kParse, pugi::encoding_utf8));
}

tl::unexpected<Error> corrupt(std::string message) { return fail(ErrorCode::kCorrupt, "list answer: " + std::move(message)); }

Result<std::string> decoded(const char* text, bool url_encoded) {
  if (!url_encoded) return std::string(text);
  auto plain = net::uri_decode(text, true);
  if (!plain) return corrupt("a name that was to be URL-encoded is not: " + std::string(plain.error().message()));
  return plain;
}

Result<ObjectInfo> parse_object(const pugi::xml_node& node, bool url_encoded) {
  ObjectInfo object;
  TRY_ASSIGN(object.key, decoded(node.child_value("Key"), url_encoded));
  if (object.key.empty()) return corrupt("an entry without key");
  const std::string_view size = node.child_value("Size");
  const auto parsed = std::from_chars(size.data(), size.data() + size.size(), object.size);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == size.data() + size.size();
  // No program can hold an offset beyond 2^63.
  if (size.empty() || !whole || object.size > INT64_MAX) {
    return corrupt("the size '" + std::string(size) + "' of '" + object.key + "' is not a number of bytes");
  }
  object.etag = quoted_etag(node.child_value("ETag"));
  object.mtime = parse_iso_date(node.child_value("LastModified")).value_or(0);
  object.storage_class = node.child_value("StorageClass");
  if (object.storage_class == "STANDARD") object.storage_class.clear();
  return object;
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\r': out += "&#13;"; break;
      case '\n': out += "&#10;"; break;
      case '\t': out += "&#9;"; break;
      default: out += c;
    }
  }
}

}  // namespace

std::string quoted_etag(std::string_view etag) {
  if (etag.empty() || etag.front() == '"' || etag.starts_with("W/")) return std::string(etag);
  return '"' + std::string(etag) + '"';
}

Result<ListPage> parse_list_page(std::string_view xml) {
  pugi::xml_document document;
  if (!load(xml, document)) return corrupt("not well-formed XML of at most 16 MiB");
  const auto root = document.child("ListBucketResult");
  if (!root) return corrupt("no ListBucketResult in it");
  const bool url_encoded = std::string_view(root.child_value("EncodingType")) == "url";
  ListPage page;
  for (const auto& node : root.children("Contents")) {
    TRY_ASSIGN(auto object, parse_object(node, url_encoded));
    page.objects.push_back(std::move(object));
  }
  for (const auto& node : root.children("CommonPrefixes")) {
    // One per element at AWS; some stores put several <Prefix> into one.
    for (const auto& prefix : node.children("Prefix")) {
      TRY_ASSIGN(auto name, decoded(prefix.child_value(), url_encoded));
      if (name.empty()) return corrupt("an empty common prefix");
      page.prefixes.push_back(std::move(name));
    }
  }
  page.truncated = std::string_view(root.child_value("IsTruncated")) == "true";
  if (page.truncated) {
    page.continuation = root.child_value("NextContinuationToken");
    if (page.continuation.empty()) return corrupt("truncated, but without NextContinuationToken");
  }
  const auto by_key = [](const ObjectInfo& a, const ObjectInfo& b) { return a.key < b.key; };
  page.reordered = !std::is_sorted(page.objects.begin(), page.objects.end(), by_key) ||
                   !std::is_sorted(page.prefixes.begin(), page.prefixes.end());
  if (page.reordered) {
    std::stable_sort(page.objects.begin(), page.objects.end(), by_key);
    std::sort(page.prefixes.begin(), page.prefixes.end());
  }
  return page;
}

std::optional<S3ErrorBody> parse_error_body(std::string_view xml) {
  pugi::xml_document document;
  if (xml.empty() || !load(xml, document)) return std::nullopt;
  const auto root = document.child("Error");
  if (!root) return std::nullopt;
  return S3ErrorBody{root.child_value("Code"), root.child_value("Message"), root.child_value("RequestId"),
                     root.child_value("Region"), root.child_value("Endpoint")};
}

Result<std::vector<S3DeleteError>> parse_delete_result(std::string_view xml) {
  pugi::xml_document document;
  if (!load(xml, document)) return fail(ErrorCode::kCorrupt, "delete answer: not well-formed XML of at most 16 MiB");
  const auto root = document.child("DeleteResult");
  if (!root) return fail(ErrorCode::kCorrupt, "delete answer: no DeleteResult in it");
  std::vector<S3DeleteError> errors;
  for (const auto& node : root.children("Error")) {
    errors.push_back({node.child_value("Key"), node.child_value("Code"), node.child_value("Message")});
  }
  return errors;
}

std::string delete_document(const std::vector<std::string>& keys) {
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>";
  for (const auto& key : keys) {
    out += "<Object><Key>";
    append_escaped(out, key);
    out += "</Key></Object>";
  }
  return out + "</Delete>";
}

bool fits_xml(std::string_view key) {
  std::size_t i = 0;
  while (i < key.size()) {
    const auto byte = static_cast<unsigned char>(key[i]);
    if (byte < 0x80) {
      if (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') return false;
      ++i;
      continue;
    }
    const std::size_t more = byte >= 0xC2 && byte <= 0xDF ? 1 : (byte & 0xF0U) == 0xE0 ? 2 : byte >= 0xF0 && byte <= 0xF4 ? 3 : 0;
    if (more == 0 || i + more >= key.size()) return false;
    unsigned code = byte & (0x3FU >> more);
    for (std::size_t j = 1; j <= more; ++j) {
      const auto next = static_cast<unsigned char>(key[i + j]);
      if ((next & 0xC0U) != 0x80) return false;
      code = (code << 6U) | (next & 0x3FU);
    }
    const bool too_long = (more == 2 && code < 0x800) || (more == 3 && code < 0x10000);
    if (too_long || (code >= 0xD800 && code <= 0xDFFF) || code == 0xFFFE || code == 0xFFFF || code > 0x10FFFF) return false;
    i += more + 1;
  }
  return true;
}

}  // namespace thermo::store
