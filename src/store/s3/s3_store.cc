#include "store/s3/s3_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/mutex.h"
#include "store/s3/s3_body.h"
#include "store/s3/s3_checksum.h"
#include "store/s3/s3_dates.h"
#include "store/s3/s3_wire.h"
#include "store/s3/s3_xml.h"

namespace thermo::store {
namespace {

// Over plain HTTP, what is kept back until its checksum matched.
constexpr std::uint64_t kMaxKeptBack = 8U << 20U;
// The same over all transfers at once; more have to wait.
constexpr std::uint64_t kKeptBackLimit = 64U << 20U;
constexpr std::uint64_t kMaxPut = 5ULL << 30U;
constexpr std::size_t kMaxKey = 1024;
constexpr std::size_t kMaxRemove = 1000;
constexpr std::string_view kMetaPrefix = "x-amz-meta-";

// Room for bodies that are kept back. Thread-safe.
class KeptBackRoom {
 public:
  // Waits until `bytes` fit; kTimeout or kCancelled.
  Result<void> take(const RequestContext& ctx, const Clock& clock, std::uint64_t bytes) {
    MutexLock lock(mutex_);
    while (used_ + bytes > kKeptBackLimit) {
      TRY(ctx.check(clock));
      (void)freed_.wait_until(mutex_, std::chrono::steady_clock::now() + Millis(50));
    }
    used_ += bytes;
    return {};
  }
  void give_back(std::uint64_t bytes) {
    MutexLock lock(mutex_);
    used_ -= bytes;
    freed_.notify_all();
  }

 private:
  Mutex mutex_{LockRank::kLeaf, "bodies kept back"};
  CondVar freed_;
  std::uint64_t used_ GUARDED_BY(mutex_) = 0;
};

class KeptBack {
 public:
  KeptBack(KeptBackRoom& room, std::uint64_t bytes) : room_(room), bytes_(bytes) {}
  ~KeptBack() { room_.give_back(bytes_); }
  KeptBack(const KeptBack&) = delete;
  KeptBack& operator=(const KeptBack&) = delete;

 private:
  KeptBackRoom& room_;
  const std::uint64_t bytes_;
};

Result<void> check_key(const std::string& key) {
  if (key.empty()) return fail(ErrorCode::kInvalidArgument, "the empty key names no object");
  if (key.size() > kMaxKey)
    return fail(ErrorCode::kNameTooLong,
                fmt::format("the key '{}...' has {} bytes; S3 allows 1,024", key.substr(0, 64), key.size()));
  return {};
}

// Names become header names; libcurl and the store would make something else of any other character.
Result<void> check_metadata(const std::map<std::string, std::string>& metadata) {
  for (const auto& [name, value] : metadata) {
    const bool good = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    });
    if (!good)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("'{}' cannot be the name of object metadata: use letters, digits, - _ .", name));
  }
  return {};
}

class S3Store final : public ObjectStore {
 public:
  S3Store(const S3Options& options, const S3Address& address)
      : clock_(options.clock),
        checksum_mode_(options.checksum_mode),
        tls_(address.tls()),
        id_(address.id()),
        wire_(options, address) {}

  const std::string& id() const override { return id_; }
  Result<ObjectInfo> head(const RequestContext& ctx, const std::string& key) override;
  Result<GetInfo> get_range(const RequestContext& ctx, const std::string& key, const std::string& if_match,
                            std::uint64_t object_size, ByteRange range, BodySink& sink) override;
  Result<ListPage> list_page(const RequestContext& ctx, const ListRequest& request) override;
  Result<PutInfo> put(const RequestContext& ctx, const std::string& key, std::span<const std::byte> body,
                      const PutOptions& options) override;
  Result<std::vector<RemoveFailure>> remove(const RequestContext& ctx, const std::vector<std::string>& keys) override;

 private:
  Result<std::optional<RemoveFailure>> remove_one(const RequestContext& ctx, const std::string& key);
  Result<void> remove_batch(const RequestContext& ctx, const std::vector<std::string>& keys,
                            std::vector<RemoveFailure>& failures);

  const Clock* const clock_;
  const bool checksum_mode_;
  const bool tls_;
  const std::string id_;
  S3Wire wire_;
  KeptBackRoom kept_back_;
};

Result<ObjectInfo> S3Store::head(const RequestContext& ctx, const std::string& key) {
  TRY(check_key(key));
  S3Call call;
  call.method = "HEAD";
  call.key = key;
  TRY_ASSIGN(const auto answer, wire_.send(ctx, call));
  ObjectInfo info;
  info.key = key;
  bool has_size = false;
  for (const auto& [name, value] : answer.headers) {
    if (name == "content-length") {
      const auto parsed = std::from_chars(value.data(), value.data() + value.size(), info.size);
      has_size = parsed.ec == std::errc() && parsed.ptr == value.data() + value.size();
    } else if (name == "etag") {
      info.etag = quoted_etag(value);
    } else if (name == "last-modified") {
      info.mtime = parse_http_date(value).value_or(0);
    } else if (name == "content-type") {
      info.content_type = value;
    } else if (name == "x-amz-storage-class" && value != "STANDARD") {
      info.storage_class = value;
    } else if (name.starts_with(kMetaPrefix)) {
      info.metadata[name.substr(kMetaPrefix.size())] = value;
    }
  }
  if (!has_size || info.etag.empty()) {
    return fail(ErrorCode::kCorrupt, wire_.describe(call) + ": the answer lacks Content-Length or ETag: is this an S3 endpoint?");
  }
  return info;
}

Result<GetInfo> S3Store::get_range(const RequestContext& ctx, const std::string& key, const std::string& if_match,
                                   std::uint64_t object_size, ByteRange range, BodySink& sink) {
  TRY(check_key(key));
  if (range.length > object_size || range.offset > object_size - range.length) {
    return fail(ErrorCode::kInvalidRange,
                fmt::format("bytes {}+{} of '{}' lie outside of its {} bytes", range.offset, range.length, key, object_size));
  }
  if (range.length == 0 && object_size != 0) return GetInfo{if_match, object_size, 0};
  const bool whole = range.length == object_size && (tls_ || object_size <= kMaxKeptBack);
  // TLS protects the wire: then the checksum only tells of damage in the store, which may come to light with the last byte.
  const Verify kind = tls_ ? Verify::kStreaming : Verify::kKeptBack;
  const Verify verify = whole && checksum_mode_ ? kind : Verify::kNone;
  std::optional<KeptBack> kept;
  if (verify == Verify::kKeptBack) {
    TRY(kept_back_.take(ctx, *clock_, object_size));
    kept.emplace(kept_back_, object_size);
  }
  S3Call call;
  call.key = key;
  call.expected_body = range.length;
  if (!if_match.empty()) call.headers.emplace_back("If-Match", if_match);
  if (!whole) call.headers.emplace_back("Range", fmt::format("bytes={}-{}", range.offset, range.end() - 1));
  if (verify != Verify::kNone) call.headers.emplace_back("x-amz-checksum-mode", "ENABLED");
  RangeBody body({wire_.describe(call), if_match, object_size, range, verify}, sink);
  call.router = &body;
  TRY_ASSIGN(const auto answer, wire_.send(ctx, call));
  return body.finish(answer);
}

Result<ListPage> S3Store::list_page(const RequestContext& ctx, const ListRequest& request) {
  S3Call call;
  call.query = {{"list-type", "2"}, {"encoding-type", "url"}, {"max-keys", std::to_string(request.max_keys)}};
  call.query.emplace_back("prefix", request.prefix);
  if (!request.delimiter.empty()) call.query.emplace_back("delimiter", request.delimiter);
  if (!request.continuation.empty()) {
    call.query.emplace_back("continuation-token", request.continuation);
  } else if (!request.start_after.empty()) {
    call.query.emplace_back("start-after", request.start_after);
  }
  TRY_ASSIGN(const auto answer, wire_.send(ctx, call));
  auto page = parse_list_page(answer.body);
  if (!page) return fail(page.error().within(wire_.describe(call)));
  return page;
}

Result<PutInfo> S3Store::put(const RequestContext& ctx, const std::string& key, std::span<const std::byte> body,
                             const PutOptions& options) {
  TRY(check_key(key));
  if (body.size() > kMaxPut)
    return fail(ErrorCode::kInvalidArgument, fmt::format("'{}' has more than 5 GiB: it needs a multipart upload", key));
  TRY(check_metadata(options.metadata));
  S3Call call;
  call.method = "PUT";
  call.key = key;
  call.body = body;
  if (options.if_none_match) call.headers.emplace_back("If-None-Match", "*");
  if (!options.if_match.empty()) call.headers.emplace_back("If-Match", options.if_match);
  call.headers.emplace_back("Content-Type", options.content_type.empty() ? "application/octet-stream" : options.content_type);
  for (const auto& [name, value] : options.metadata) call.headers.emplace_back(std::string(kMetaPrefix) + name, value);
  TRY_ASSIGN(const auto answer, wire_.send(ctx, call));
  const auto* etag = answer.header("etag");
  if (etag == nullptr || etag->empty()) return fail(ErrorCode::kCorrupt, wire_.describe(call) + ": the answer lacks an ETag");
  return PutInfo{quoted_etag(*etag)};
}

Result<std::optional<RemoveFailure>> S3Store::remove_one(const RequestContext& ctx, const std::string& key) {
  S3Call call;
  call.method = "DELETE";
  call.key = key;
  const auto answer = wire_.send(ctx, call);
  if (answer || answer.error().code() == ErrorCode::kNotFound) return std::optional<RemoveFailure>();
  // What concerns this key alone comes back as a value; what another attempt may cure is the whole call's error.
  const auto& error = answer.error();
  const bool about_the_key =
      error.http_status() != 0 && error.retry_class() == RetryClass::kNever && error.code() != ErrorCode::kNoSuchBucket;
  if (!about_the_key) return fail(error);
  return std::optional<RemoveFailure>({key, error});
}

Result<void> S3Store::remove_batch(const RequestContext& ctx, const std::vector<std::string>& keys,
                                   std::vector<RemoveFailure>& failures) {
  const std::string document = delete_document(keys);
  S3Call call;
  call.method = "POST";
  call.query = {{"delete", ""}};
  call.headers = {{"Content-Type", "application/xml"}, {"Content-MD5", md5_base64(document)}};
  call.body = std::as_bytes(std::span(document.data(), document.size()));
  TRY_ASSIGN(const auto answer, wire_.send(ctx, call));
  if (const auto inside = parse_error_body(answer.body)) {
    S3Failure failure = parse_failure(answer);
    if (code_of(500, inside->code) == ErrorCode::kUnavailable) failure.status = 500;
    return fail(to_error(failure, wire_.describe(call)));
  }
  TRY_ASSIGN(const auto errors, parse_delete_result(answer.body));
  for (const auto& error : errors) {
    const ErrorCode code = code_of(500, error.code);
    if (code == ErrorCode::kNotFound) continue;
    failures.push_back({error.key, Error(code, fmt::format("DELETE '{}': {}: {}", error.key, error.code, error.message))});
  }
  return {};
}

Result<std::vector<RemoveFailure>> S3Store::remove(const RequestContext& ctx, const std::vector<std::string>& keys) {
  if (keys.size() > kMaxRemove)
    return fail(ErrorCode::kInvalidArgument, fmt::format("{} keys in one removal; S3 allows 1,000", keys.size()));
  std::vector<RemoveFailure> failures;
  std::vector<std::string> batch;
  std::vector<std::string> single;
  for (const auto& key : keys) {
    if (auto good = check_key(key); !good) {
      failures.push_back({key, good.error()});
    } else {
      // XML cannot carry every key; a URL can.
      (fits_xml(key) ? batch : single).push_back(key);
    }
  }
  if (batch.size() == 1) {
    single.push_back(std::move(batch.front()));
    batch.clear();
  }
  if (!batch.empty()) TRY(remove_batch(ctx, batch, failures));
  for (const auto& key : single) {
    TRY_ASSIGN(auto failure, remove_one(ctx, key));
    if (failure) failures.push_back(std::move(*failure));
  }
  return failures;
}

}  // namespace

Result<ObjectStorePtr> make_s3_store(const S3Options& options) {
  TRY_ASSIGN(const auto address, S3Address::make(options));
  return ObjectStorePtr(std::make_shared<S3Store>(options, address));
}

}  // namespace thermo::store
