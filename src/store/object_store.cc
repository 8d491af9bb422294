#include "store/object_store.h"

namespace thermo::store {
namespace {

tl::unexpected<Error> unsupported(std::string_view verb) {
  return fail(ErrorCode::kNotSupported, "this store has no " + std::string(verb));
}

void append_part(std::string& text, std::string_view part) {
  // Length first: no two lists of parts give the same text.
  const std::uint64_t size = part.size();
  for (int shift = 0; shift < 64; shift += 8) text += static_cast<char>((size >> shift) & 0xff);
  text += part;
}

}  // namespace

VersionId version_id(std::string_view store_id, std::string_view key, std::string_view etag, std::uint64_t size) {
  std::string text;
  text.reserve(store_id.size() + key.size() + etag.size() + 40);
  append_part(text, store_id);
  append_part(text, key);
  append_part(text, etag);
  for (int shift = 0; shift < 64; shift += 8) text += static_cast<char>((size >> shift) & 0xff);
  return hash128(text);
}

Result<std::string> ObjectStore::create_multipart(const RequestContext&, const std::string&, const PutOptions&) {
  return unsupported("multipart upload");
}
Result<UploadedPart> ObjectStore::upload_part(const RequestContext&, const std::string&, const std::string&, int,
                                              std::span<const std::byte>) {
  return unsupported("multipart upload");
}
Result<UploadedPart> ObjectStore::copy_part(const RequestContext&, const std::string&, const std::string&, int,
                                            const std::string&, const std::string&, ByteRange) {
  return unsupported("part copy");
}
Result<PutInfo> ObjectStore::complete_multipart(const RequestContext&, const std::string&, const std::string&,
                                                const std::vector<UploadedPart>&, const PutOptions&) {
  return unsupported("multipart upload");
}
Result<void> ObjectStore::abort_multipart(const RequestContext&, const std::string&, const std::string&) {
  return unsupported("multipart upload");
}
Result<PutInfo> ObjectStore::copy(const RequestContext&, const std::string&, const std::string&, const std::string&,
                                  const PutOptions&) {
  return unsupported("server-side copy");
}

}  // namespace thermo::store
