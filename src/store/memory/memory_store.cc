#include "store/memory/memory_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/mutex.h"

namespace thermo::store {
namespace {

constexpr std::size_t kMaxKey = 1024;       // S3's limit, in bytes
constexpr std::uint32_t kMaxListed = 1000;  // S3 answers no more, whatever is asked
constexpr std::size_t kMaxRemoved = 1000;
constexpr std::size_t kPiece = std::size_t{256} << 10;  // as a network delivers: sinks see more than one piece
constexpr std::string_view kTokenMark = "after:";       // so that a token is never mistaken for a key

struct Object {
  ObjectInfo info;
  std::shared_ptr<const std::string> body;  // shared: a slow reader keeps its version, and needs no lock
};

std::string etag_of(std::string_view body) { return '"' + hash128(body).hex() + '"'; }

Result<void> check_key(const std::string& key) {
  if (key.empty()) return fail(ErrorCode::kInvalidArgument, "a key must not be empty");
  if (key.size() > kMaxKey) {
    return fail(ErrorCode::kNameTooLong,
                "key of " + std::to_string(key.size()) + " bytes; the limit is " + std::to_string(kMaxKey));
  }
  return {};
}

tl::unexpected<Error> no_such_key(const std::string& key) {
  return fail(Error(ErrorCode::kNotFound, "no such key '" + key + "'").with_http(404));
}

tl::unexpected<Error> precondition(const std::string& key, std::string_view why) {
  return fail(Error(ErrorCode::kPreconditionFailed, "'" + key + "': " + std::string(why)).with_http(412));
}

class MemoryStore final : public ObjectStore {
 public:
  MemoryStore(const std::string& name, const Clock& clock) : id_("memory:///" + name), clock_(clock) {}

  [[nodiscard]] const std::string& id() const override { return id_; }

  [[nodiscard]] Result<ObjectInfo> head(const RequestContext& ctx, const std::string& key) override {
    TRY(ctx.check(clock_));
    MutexLock lock(mutex_);
    const auto it = objects_.find(key);
    if (it == objects_.end()) return no_such_key(key);
    return it->second.info;
  }

  [[nodiscard]] Result<GetInfo> get_range(const RequestContext& ctx, const std::string& key, const std::string& if_match,
                                          std::uint64_t /*object_size*/, ByteRange range, BodySink& sink) override {
    TRY(ctx.check(clock_));
    GetInfo info;
    std::shared_ptr<const std::string> body;
    {
      MutexLock lock(mutex_);
      const auto it = objects_.find(key);
      if (it == objects_.end()) return no_such_key(key);
      info = {it->second.info.etag, it->second.info.size, it->second.info.mtime};
      body = it->second.body;
    }
    if (!if_match.empty() && if_match != info.etag) return precondition(key, "the object is no longer the version asked for");
    if (range.offset > body->size() || range.length > body->size() - range.offset) {
      return fail(Error(ErrorCode::kInvalidRange, "'" + key + "': bytes " + std::to_string(range.offset) + "+" +
                                                      std::to_string(range.length) + " of an object of " +
                                                      std::to_string(body->size()))
                      .with_http(416));
    }
    const auto bytes = std::as_bytes(std::span(*body)).subspan(range.offset, range.length);
    for (std::size_t done = 0; done < bytes.size();) {
      const std::size_t piece = std::min(kPiece, bytes.size() - done);
      TRY(sink.write(bytes.subspan(done, piece)));
      done += piece;
      if (done < bytes.size()) TRY(ctx.check(clock_));
    }
    return info;
  }

  [[nodiscard]] Result<ListPage> list_page(const RequestContext& ctx, const ListRequest& request) override;

  [[nodiscard]] Result<PutInfo> put(const RequestContext& ctx, const std::string& key, std::span<const std::byte> body,
                                    const PutOptions& options) override {
    TRY(ctx.check(clock_));
    TRY(check_key(key));
    Object object;
    object.body = std::make_shared<const std::string>(reinterpret_cast<const char*>(body.data()), body.size());
    object.info = {.key = key,
                   .size = body.size(),
                   .etag = etag_of(*object.body),
                   .mtime = clock_.wall(),
                   .storage_class = {},
                   .content_type = options.content_type,
                   .metadata = options.metadata};
    PutInfo answer{object.info.etag};
    MutexLock lock(mutex_);
    const auto it = objects_.find(key);
    if (options.if_none_match && it != objects_.end()) return precondition(key, "the key exists already");
    if (!options.if_match.empty()) {
      if (it == objects_.end()) return no_such_key(key);  // S3 answers 404, not 412
      if (it->second.info.etag != options.if_match) return precondition(key, "the object is another version now");
    }
    objects_.insert_or_assign(key, std::move(object));
    return answer;
  }

  [[nodiscard]] Result<std::vector<RemoveFailure>> remove(const RequestContext& ctx,
                                                          const std::vector<std::string>& keys) override {
    TRY(ctx.check(clock_));
    if (keys.size() > kMaxRemoved) {
      return fail(ErrorCode::kInvalidArgument, std::to_string(keys.size()) + " keys in one removal; the limit is 1000");
    }
    MutexLock lock(mutex_);
    for (const auto& key : keys) objects_.erase(key);
    return std::vector<RemoveFailure>{};
  }

 private:
  const std::string id_;
  const Clock& clock_;
  mutable Mutex mutex_{LockRank::kStore, "memory store"};
  std::map<std::string, Object> objects_ GUARDED_BY(mutex_);
};

// The smallest text above everything that starts with `prefix`; empty when there is none (all bytes are 0xff).
std::string past_prefix(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xff) prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

Result<ListPage> MemoryStore::list_page(const RequestContext& ctx, const ListRequest& request) {
  TRY(ctx.check(clock_));
  std::string after = request.start_after;
  if (!request.continuation.empty()) {
    if (!request.continuation.starts_with(kTokenMark)) {
      return fail(ErrorCode::kInvalidArgument, "the continuation token '" + request.continuation + "' is not of this store");
    }
    after = request.continuation.substr(kTokenMark.size());
  }
  const std::uint32_t limit = std::min(request.max_keys, kMaxListed);
  ListPage page;
  if (limit == 0) return page;  // as S3 does: empty and not truncated
  const std::string& prefix = request.prefix;
  std::string last;

  MutexLock lock(mutex_);
  auto it = after >= prefix ? objects_.upper_bound(after) : objects_.lower_bound(prefix);
  while (it != objects_.end() && it->first.starts_with(prefix)) {
    const std::string& key = it->first;
    const std::size_t cut = request.delimiter.empty() ? std::string::npos : key.find(request.delimiter, prefix.size());
    std::string group;
    if (cut != std::string::npos) group = key.substr(0, cut + request.delimiter.size());
    // A group sorts as its prefix: when that is not past `after`, the group was on a page before.
    const bool wanted = group.empty() || group > after;
    if (wanted && page.objects.size() + page.prefixes.size() == limit) {
      page.truncated = true;
      page.continuation = std::string(kTokenMark) + last;
      break;
    }
    if (group.empty()) {
      ObjectInfo info = it->second.info;
      info.content_type.clear();  // a listing does not carry these
      info.metadata.clear();
      page.objects.push_back(std::move(info));
      last = key;
      ++it;
      continue;
    }
    if (wanted) {
      page.prefixes.push_back(group);
      last = group;
    }
    const std::string next = past_prefix(group);
    it = next.empty() ? objects_.end() : objects_.lower_bound(next);
  }
  return page;
}

}  // namespace

ObjectStorePtr make_memory_store(const std::string& name, const Clock& clock) {
  return std::make_shared<MemoryStore>(name, clock);
}

}  // namespace thermo::store
