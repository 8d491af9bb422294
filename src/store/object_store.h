#pragma once
// ObjectStore: where truth lives. Narrow: everything else (retries, metrics, checks) is a layer with the same interface.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/body_sink.h"
#include "base/context.h"
#include "base/hash.h"
#include "base/result.h"

namespace thermo::store {

/// Half-open range of bytes [offset, offset + length).
struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  [[nodiscard]] std::uint64_t end() const { return offset + length; }
  auto operator<=>(const ByteRange&) const = default;
};

/// What the store says of one key. From a listing `content_type`, `metadata` and `checksum` are empty.
struct ObjectInfo {
  std::string key;  ///< raw bytes, as the store has it
  std::uint64_t size = 0;
  std::string etag;           ///< opaque, as sent, quotes included; never empty for s3
  WallNanos mtime = 0;        ///< Last-Modified
  std::string storage_class;  ///< empty = STANDARD
  std::string content_type;
  std::map<std::string, std::string> metadata;  ///< x-amz-meta-*, names without the prefix
};

/// Identity of one object version, equal on all nodes; names the object file in every tier.
using VersionId = Hash128;

/// Hash of (store id, key, ETag or version id, size), the parts separated unambiguously. Part of the on-disk format.
[[nodiscard]] VersionId version_id(std::string_view store_id, std::string_view key, std::string_view etag, std::uint64_t size);

using thermo::BodySink;

/// What came with a body.
struct GetInfo {
  std::string etag;
  std::uint64_t object_size = 0;  ///< from Content-Range or Content-Length
  WallNanos mtime = 0;
};

struct ListRequest {
  std::string prefix;
  std::string delimiter;     ///< "" or "/"
  std::string start_after;   ///< only keys > this; empty = from the start. With a delimiter, whole groups sort as their prefix
  std::string continuation;  ///< token of the page before; then start_after is ignored
  std::uint32_t max_keys = 1000;
};

struct ListPage {
  std::vector<ObjectInfo> objects;    ///< in key order (bytewise)
  std::vector<std::string> prefixes;  ///< common prefixes, in order, each ending in the delimiter
  bool truncated = false;
  std::string continuation;  ///< set when truncated
  bool reordered = false;    ///< the store sent them in another order: this page alone does not tell what lies between its keys
};

/// Condition of a write.
struct PutOptions {
  bool if_none_match = false;  ///< only when the key does not exist
  std::string if_match;        ///< only when the ETag is this; empty = any
  std::string content_type;
  std::map<std::string, std::string> metadata;
};

struct PutInfo {
  std::string etag;
};

struct RemoveFailure {
  std::string key;
  Error error;
};

struct UploadedPart {
  int number = 0;  ///< 1..10,000
  std::string etag;
};

/// Thread-safe. Blocking; every call ends by ctx.deadline. Keys are relative to the bucket (not to a mount's prefix).
/// Errors: kNotFound, kNoSuchBucket, kAccessDenied, kPreconditionFailed, kThrottled, kUnavailable, kTimeout, kCancelled,
/// kCorrupt, kClockSkew, kTls, kNotSupported ...
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  /// Canonical name, equal on all nodes and for all ways to write it: "s3://host:port/bucket" or "file:///dir". Part of version
  /// ids.
  [[nodiscard]] virtual const std::string& id() const = 0;

  [[nodiscard]] virtual Result<ObjectInfo> head(const RequestContext& ctx, const std::string& key) = 0;

  /// Streams exactly `range.length` bytes (range lies within the object) into `sink`. `if_match` is the ETag the bytes must
  /// belong to (empty only where no version is known yet): another one answers kPreconditionFailed and delivers nothing of the
  /// other version.
  [[nodiscard]] virtual Result<GetInfo> get_range(const RequestContext& ctx, const std::string& key, const std::string& if_match,
                                                  std::uint64_t object_size, ByteRange range, BodySink& sink) = 0;

  [[nodiscard]] virtual Result<ListPage> list_page(const RequestContext& ctx, const ListRequest& request) = 0;

  [[nodiscard]] virtual Result<PutInfo> put(const RequestContext& ctx, const std::string& key, std::span<const std::byte> body,
                                            const PutOptions& options) = 0;

  /// Removes up to 1,000 keys; a key that does not exist counts as removed. Per-key failures come back as values.
  [[nodiscard]] virtual Result<std::vector<RemoveFailure>> remove(const RequestContext& ctx,
                                                                  const std::vector<std::string>& keys) = 0;

  // Verbs of the write path. The default answers kNotSupported.
  [[nodiscard]] virtual Result<std::string> create_multipart(const RequestContext& ctx, const std::string& key,
                                                             const PutOptions& options);
  [[nodiscard]] virtual Result<UploadedPart> upload_part(const RequestContext& ctx, const std::string& key,
                                                         const std::string& upload_id, int number,
                                                         std::span<const std::byte> body);
  [[nodiscard]] virtual Result<UploadedPart> copy_part(const RequestContext& ctx, const std::string& key,
                                                       const std::string& upload_id, int number, const std::string& source_key,
                                                       const std::string& source_etag, ByteRange range);
  [[nodiscard]] virtual Result<PutInfo> complete_multipart(const RequestContext& ctx, const std::string& key,
                                                           const std::string& upload_id, const std::vector<UploadedPart>& parts,
                                                           const PutOptions& options);
  [[nodiscard]] virtual Result<void> abort_multipart(const RequestContext& ctx, const std::string& key,
                                                     const std::string& upload_id);
  [[nodiscard]] virtual Result<PutInfo> copy(const RequestContext& ctx, const std::string& source_key,
                                             const std::string& source_etag, const std::string& key, const PutOptions& options);
};

using ObjectStorePtr = std::shared_ptr<ObjectStore>;

}  // namespace thermo::store
