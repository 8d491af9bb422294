#pragma once
// Base classes of layers: one that passes every verb on, and one that runs every verb through a single function.

#include <string>
#include <utility>
#include <vector>

#include "store/object_store.h"

namespace thermo::store {

enum class Verb : std::uint8_t {
  kHead,
  kGet,
  kList,
  kPut,
  kRemove,
  kCreateMultipart,
  kUploadPart,
  kCopyPart,
  kCompleteMultipart,
  kAbortMultipart,
  kCopy
};
inline constexpr std::size_t kVerbs = 11;

/// Stable lower-case name for labels and log lines.
[[nodiscard]] std::string_view to_string(Verb verb);

/// What a layer may know of a call without knowing its verb.
struct Call {
  Verb verb;
  const std::string& key;  ///< prefix of a listing, first key of a removal
  std::uint64_t sent = 0;  ///< bytes of the body that goes to the store
  ByteRange range = {};    ///< of a GET or a part copy
  bool repeatable = true;  ///< false: a second try cannot tell its own first effect from somebody else's
};

/// Passes every verb to the inner store.
class ForwardingStore : public ObjectStore {
 public:
  explicit ForwardingStore(ObjectStorePtr inner) : inner_(std::move(inner)) {}

  [[nodiscard]] const std::string& id() const override { return inner_->id(); }
  [[nodiscard]] Result<ObjectInfo> head(const RequestContext& ctx, const std::string& key) override;
  [[nodiscard]] Result<GetInfo> get_range(const RequestContext& ctx, const std::string& key, const std::string& if_match,
                                          std::uint64_t object_size, ByteRange range, BodySink& sink) override;
  [[nodiscard]] Result<ListPage> list_page(const RequestContext& ctx, const ListRequest& request) override;
  [[nodiscard]] Result<PutInfo> put(const RequestContext& ctx, const std::string& key, std::span<const std::byte> body,
                                    const PutOptions& options) override;
  [[nodiscard]] Result<std::vector<RemoveFailure>> remove(const RequestContext& ctx,
                                                          const std::vector<std::string>& keys) override;
  [[nodiscard]] Result<std::string> create_multipart(const RequestContext& ctx, const std::string& key,
                                                     const PutOptions& options) override;
  [[nodiscard]] Result<UploadedPart> upload_part(const RequestContext& ctx, const std::string& key, const std::string& upload_id,
                                                 int number, std::span<const std::byte> body) override;
  [[nodiscard]] Result<UploadedPart> copy_part(const RequestContext& ctx, const std::string& key, const std::string& upload_id,
                                               int number, const std::string& source_key, const std::string& source_etag,
                                               ByteRange range) override;
  [[nodiscard]] Result<PutInfo> complete_multipart(const RequestContext& ctx, const std::string& key,
                                                   const std::string& upload_id, const std::vector<UploadedPart>& parts,
                                                   const PutOptions& options) override;
  [[nodiscard]] Result<void> abort_multipart(const RequestContext& ctx, const std::string& key,
                                             const std::string& upload_id) override;
  [[nodiscard]] Result<PutInfo> copy(const RequestContext& ctx, const std::string& source_key, const std::string& source_etag,
                                     const std::string& key, const PutOptions& options) override;

 protected:
  [[nodiscard]] ObjectStore& inner() { return *inner_; }

 private:
  const ObjectStorePtr inner_;
};

/// Runs every verb through `Layer::around(ctx, call, send)`, where `send(ctx)` makes the call on the inner store and returns its
/// Result. A layer overrides single verbs where it must see more.
template <class Layer>
class AroundStore : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  Result<ObjectInfo> head(const RequestContext& ctx, const std::string& key) override {
    return self().around(ctx, {Verb::kHead, key}, [&](const RequestContext& c) { return inner().head(c, key); });
  }
  Result<GetInfo> get_range(const RequestContext& ctx, const std::string& key, const std::string& if_match,
                            std::uint64_t object_size, ByteRange range, BodySink& sink) override {
    return self().around(ctx, {Verb::kGet, key, 0, range},
                         [&](const RequestContext& c) { return inner().get_range(c, key, if_match, object_size, range, sink); });
  }
  Result<ListPage> list_page(const RequestContext& ctx, const ListRequest& request) override {
    return self().around(ctx, {Verb::kList, request.prefix},
                         [&](const RequestContext& c) { return inner().list_page(c, request); });
  }
  Result<PutInfo> put(const RequestContext& ctx, const std::string& key, std::span<const std::byte> body,
                      const PutOptions& options) override {
    return self().around(ctx, {Verb::kPut, key, body.size(), {}, !conditional(options)},
                         [&](const RequestContext& c) { return inner().put(c, key, body, options); });
  }
  Result<std::vector<RemoveFailure>> remove(const RequestContext& ctx, const std::vector<std::string>& keys) override {
    static const std::string kNone;
    return self().around(ctx, {Verb::kRemove, keys.empty() ? kNone : keys.front()},
                         [&](const RequestContext& c) { return inner().remove(c, keys); });
  }
  Result<std::string> create_multipart(const RequestContext& ctx, const std::string& key, const PutOptions& options) override {
    return self().around(ctx, {Verb::kCreateMultipart, key},
                         [&](const RequestContext& c) { return inner().create_multipart(c, key, options); });
  }
  Result<UploadedPart> upload_part(const RequestContext& ctx, const std::string& key, const std::string& upload_id, int number,
                                   std::span<const std::byte> body) override {
    return self().around(ctx, {Verb::kUploadPart, key, body.size()},
                         [&](const RequestContext& c) { return inner().upload_part(c, key, upload_id, number, body); });
  }
  Result<UploadedPart> copy_part(const RequestContext& ctx, const std::string& key, const std::string& upload_id, int number,
                                 const std::string& source_key, const std::string& source_etag, ByteRange range) override {
    return self().around(ctx, {Verb::kCopyPart, key, 0, range}, [&](const RequestContext& c) {
      return inner().copy_part(c, key, upload_id, number, source_key, source_etag, range);
    });
  }
  Result<PutInfo> complete_multipart(const RequestContext& ctx, const std::string& key, const std::string& upload_id,
                                     const std::vector<UploadedPart>& parts, const PutOptions& options) override {
    // Not repeatable: after it took effect the upload is gone, and a second try is told so.
    return self().around(ctx, {Verb::kCompleteMultipart, key, 0, {}, false},
                         [&](const RequestContext& c) { return inner().complete_multipart(c, key, upload_id, parts, options); });
  }
  Result<void> abort_multipart(const RequestContext& ctx, const std::string& key, const std::string& upload_id) override {
    return self().around(ctx, {Verb::kAbortMultipart, key},
                         [&](const RequestContext& c) { return inner().abort_multipart(c, key, upload_id); });
  }
  Result<PutInfo> copy(const RequestContext& ctx, const std::string& source_key, const std::string& source_etag,
                       const std::string& key, const PutOptions& options) override {
    return self().around(ctx, {Verb::kCopy, key, 0, {}, !conditional(options)},
                         [&](const RequestContext& c) { return inner().copy(c, source_key, source_etag, key, options); });
  }

 private:
  [[nodiscard]] Layer& self() { return static_cast<Layer&>(*this); }
  [[nodiscard]] static bool conditional(const PutOptions& options) { return options.if_none_match || !options.if_match.empty(); }
};

/// Counts what passes through to another sink and remembers that sink's own error.
class CountingSink final : public BodySink {
 public:
  explicit CountingSink(BodySink& inner) : inner_(inner) {}
  [[nodiscard]] Result<void> write(std::span<const std::byte> bytes) override {
    auto written = inner_.write(bytes);
    if (written) bytes_ += bytes.size();
    else refused_ = true;
    return written;
  }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] bool refused() const { return refused_; }  ///< the receiver, not the store, ended the transfer

 private:
  BodySink& inner_;
  std::uint64_t bytes_ = 0;
  bool refused_ = false;
};

}  // namespace thermo::store
