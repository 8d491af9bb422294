// Memory mode: buckets of flat keys, with a short history so that a stale listing can be shown.

#include <deque>
#include <map>

#include "base/mutex.h"
#include "s3sim/backend.h"

namespace thermo::s3sim {
namespace {

using Keys = std::map<std::string, ObjectPtr>;

/// A change that can be undone: what the key was before.
struct Change {
  MonoTime when;
  std::string key;
  ObjectPtr before;
};
/// Listings can be as stale as the history is long.
constexpr std::size_t kMaxHistory = 10'000;

struct Bucket {
  WallNanos created = 0;
  Keys keys;
  std::deque<Change> history;
};

class MapCursor final : public KeyCursor {
 public:
  explicit MapCursor(const Keys& keys) : keys_(keys), at_(keys.begin()) {}
  void seek(const std::string& key) override { at_ = keys_.lower_bound(key); }
  void next() override { ++at_; }
  bool valid() const override { return at_ != keys_.end(); }
  const std::string& key() const override { return at_->first; }
  ObjectPtr object() const override { return at_->second; }

 private:
  const Keys& keys_;
  Keys::const_iterator at_;
};

class MemoryBackend final : public Backend {
 public:
  std::vector<BucketInfo> buckets() override {
    MutexLock lock(mutex_);
    std::vector<BucketInfo> out;
    for (const auto& [name, bucket] : buckets_) out.push_back({name, bucket.created});
    return out;
  }

  bool has_bucket(const std::string& bucket) override {
    MutexLock lock(mutex_);
    return buckets_.contains(bucket);
  }

  S3Result<void> create_bucket(const std::string& name) override {
    MutexLock lock(mutex_);
    if (!buckets_.try_emplace(name, Bucket{clock_.wall(), {}, {}}).second)
      return refuse(409, "BucketAlreadyOwnedByYou",
                    "Your previous request to create the named bucket succeeded and you already own it.");
    return {};
  }

  S3Result<void> remove_bucket(const std::string& name) override {
    MutexLock lock(mutex_);
    const auto it = buckets_.find(name);
    if (it == buckets_.end()) return tl::unexpected<S3Error>(no_such_bucket(name));
    if (!it->second.keys.empty()) return refuse(409, "BucketNotEmpty", "The bucket you tried to delete is not empty");
    buckets_.erase(it);
    return {};
  }

  S3Result<ObjectPtr> find(const std::string& bucket, const std::string& key, bool /*with_body*/) override {
    MutexLock lock(mutex_);
    const auto it = buckets_.find(bucket);
    if (it == buckets_.end()) return tl::unexpected<S3Error>(no_such_bucket(bucket));
    const auto found = it->second.keys.find(key);
    if (found == it->second.keys.end()) return tl::unexpected<S3Error>(no_such_key(key));
    return found->second;
  }

  S3Result<ObjectPtr> put(const std::string& bucket, const std::string& key, Object object,
                          const WriteCondition& condition) override {
    object.size = object.data->size();
    object.modified = clock_.wall();
    auto stored = std::make_shared<const Object>(std::move(object));
    MutexLock lock(mutex_);
    const auto it = buckets_.find(bucket);
    if (it == buckets_.end()) return tl::unexpected<S3Error>(no_such_bucket(bucket));
    ObjectPtr& slot = it->second.keys[key];
    if (auto ok = check_condition(condition, slot, key); !ok) {
      if (!slot) it->second.keys.erase(key);
      return tl::unexpected<S3Error>(std::move(ok).error());
    }
    remember(it->second, key, slot);
    slot = stored;
    return stored;
  }

  S3Result<void> remove(const std::string& bucket, const std::string& key, const WriteCondition& condition) override {
    MutexLock lock(mutex_);
    const auto it = buckets_.find(bucket);
    if (it == buckets_.end()) return tl::unexpected<S3Error>(no_such_bucket(bucket));
    const auto found = it->second.keys.find(key);
    S3_TRY(check_condition(condition, found == it->second.keys.end() ? nullptr : found->second, key));
    if (found == it->second.keys.end()) return {};
    remember(it->second, key, found->second);
    it->second.keys.erase(found);
    return {};
  }

  S3Result<ListPage> list(const std::string& bucket, const ListQuery& query, Nanos stale_by) override {
    MutexLock lock(mutex_);
    const auto it = buckets_.find(bucket);
    if (it == buckets_.end()) return tl::unexpected<S3Error>(no_such_bucket(bucket));
    if (stale_by.count() <= 0) {
      MapCursor cursor(it->second.keys);
      return list_page(cursor, query);
    }
    Keys past = it->second.keys;
    const MonoTime then = clock_.now() - stale_by;
    for (auto change = it->second.history.rbegin(); change != it->second.history.rend() && change->when > then; ++change) {
      if (change->before) {
        past[change->key] = change->before;
      } else {
        past.erase(change->key);
      }
    }
    MapCursor cursor(past);
    return list_page(cursor, query);
  }

 private:
  void remember(Bucket& bucket, const std::string& key, const ObjectPtr& before) REQUIRES(mutex_) {
    ObjectPtr kept;
    if (before) {  // a listing needs no bytes, and the history must not hold what was overwritten
      auto bare = std::make_shared<Object>(*before);
      bare->data.reset();
      kept = std::move(bare);
    }
    bucket.history.push_back({clock_.now(), key, std::move(kept)});
    if (bucket.history.size() > kMaxHistory) bucket.history.pop_front();
  }

  const Clock& clock_ = Clock::system();
  Mutex mutex_{LockRank::kStore, "s3sim memory"};
  std::map<std::string, Bucket> buckets_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Backend> make_memory_backend() { return std::make_unique<MemoryBackend>(); }

}  // namespace thermo::s3sim
