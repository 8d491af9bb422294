#include "store/layers/forwarding.h"

namespace thermo::store {

std::string_view to_string(Verb verb) {
  switch (verb) {
    case Verb::kHead: return "head";
    case Verb::kGet: return "get";
    case Verb::kList: return "list";
    case Verb::kPut: return "put";
    case Verb::kRemove: return "remove";
    case Verb::kCreateMultipart: return "create_multipart";
    case Verb::kUploadPart: return "upload_part";
    case Verb::kCopyPart: return "copy_part";
    case Verb::kCompleteMultipart: return "complete_multipart";
    case Verb::kAbortMultipart: return "abort_multipart";
    case Verb::kCopy: return "copy";
  }
  return "unknown";
}

Result<ObjectInfo> ForwardingStore::head(const RequestContext& ctx, const std::string& key) { return inner_->head(ctx, key); }
Result<GetInfo> ForwardingStore::get_range(const RequestContext& ctx, const std::string& key, const std::string& if_match,
                                           std::uint64_t object_size, ByteRange range, BodySink& sink) {
  return inner_->get_range(ctx, key, if_match, object_size, range, sink);
}
Result<ListPage> ForwardingStore::list_page(const RequestContext& ctx, const ListRequest& request) {
  return inner_->list_page(ctx, request);
}
Result<PutInfo> ForwardingStore::put(const RequestContext& ctx, const std::string& key, std::span<const std::byte> body,
                                     const PutOptions& options) {
  return inner_->put(ctx, key, body, options);
}
Result<std::vector<RemoveFailure>> ForwardingStore::remove(const RequestContext& ctx, const std::vector<std::string>& keys) {
  return inner_->remove(ctx, keys);
}
Result<std::string> ForwardingStore::create_multipart(const RequestContext& ctx, const std::string& key,
                                                      const PutOptions& options) {
  return inner_->create_multipart(ctx, key, options);
}
Result<UploadedPart> ForwardingStore::upload_part(const RequestContext& ctx, const std::string& key, const std::string& upload_id,
                                                  int number, std::span<const std::byte> body) {
  return inner_->upload_part(ctx, key, upload_id, number, body);
}
Result<UploadedPart> ForwardingStore::copy_part(const RequestContext& ctx, const std::string& key, const std::string& upload_id,
                                                int number, const std::string& source_key, const std::string& source_etag,
                                                ByteRange range) {
  return inner_->copy_part(ctx, key, upload_id, number, source_key, source_etag, range);
}
Result<PutInfo> ForwardingStore::complete_multipart(const RequestContext& ctx, const std::string& key,
                                                    const std::string& upload_id, const std::vector<UploadedPart>& parts,
                                                    const PutOptions& options) {
  return inner_->complete_multipart(ctx, key, upload_id, parts, options);
}
Result<void> ForwardingStore::abort_multipart(const RequestContext& ctx, const std::string& key, const std::string& upload_id) {
  return inner_->abort_multipart(ctx, key, upload_id);
}
Result<PutInfo> ForwardingStore::copy(const RequestContext& ctx, const std::string& source_key, const std::string& source_etag,
                                      const std::string& key, const PutOptions& options) {
  return inner_->copy(ctx, source_key, source_etag, key, options);
}

}  // namespace thermo::store
