#pragma once
// A catalog view over a store, kept in maps: lists the whole store when what it knows has expired.

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/hash.h"
#include "catalog/catalog.h"

namespace thermo::test {

class FakeView final : public catalog::View {
 public:
  FakeView(store::ObjectStorePtr store, std::string root, const Clock& clock, Nanos ttl)
      : store_(std::move(store)), root_(std::move(root)), clock_(clock), ttl_(ttl) {}

  Result<catalog::Found> lookup(const RequestContext& ctx, const std::string& prefix, std::string_view name) override {
    ++calls;
    TRY(refresh(ctx));
    std::lock_guard lock(mutex_);
    const std::string key = prefix + std::string(name);
    catalog::Found found{std::nullopt, left()};
    const auto below = files_.lower_bound(key + "/");
    if (below != files_.end() && below->first.starts_with(key + "/")) found.entry = folder_locked(key + "/");
    else if (const auto file = files_.find(key); file != files_.end()) found.entry = file->second;
    else if (name.starts_with(".object:")) {
      const auto hidden = files_.find(prefix + std::string(name.substr(8)));
      if (hidden != files_.end()) found.entry = hidden->second;
    }
    return found;
  }

  Result<void> list(const RequestContext& ctx, const std::string& prefix, std::string_view after,
                    const std::function<bool(const catalog::ListedName&)>& visit, catalog::Told* told) override {
    ++calls;
    TRY(refresh(ctx));
    std::map<std::string, catalog::Entry> children;
    {
      std::lock_guard lock(mutex_);
      for (auto at = files_.lower_bound(prefix); at != files_.end() && at->first.starts_with(prefix); ++at) {
        const auto rest = at->first.substr(prefix.size());
        const auto slash = rest.find('/');
        if (slash == std::string::npos) children.emplace(rest, at->second);
        else children.insert_or_assign(rest.substr(0, slash), folder_locked(prefix + rest.substr(0, slash + 1)));
      }
      if (children.empty() && prefix != root_) return fail(ErrorCode::kNotFound);
      if (told != nullptr) *told = {left(), 1};
    }
    for (auto at = after.empty() ? children.begin() : children.upper_bound(std::string(after)); at != children.end(); ++at) {
      if (list_fails_after && (*list_fails_after)-- <= 0) return fail(ErrorCode::kThrottled, "slow down");
      const catalog::ListedName listed{at->first, &at->second};
      if (!visit(listed)) return {};
    }
    return {};
  }

  Result<catalog::Entry> by_number(const RequestContext&, catalog::Number number) override {
    ++calls;
    std::lock_guard lock(mutex_);
    for (const auto& [key, file] : files_) {
      if (file.number == number) return file;
    }
    for (const auto& [prefix, folder] : folders_) {
      if (folder.number == number) return folder;
    }
    return fail(ErrorCode::kStale);
  }

  Result<catalog::Folder> folder(const RequestContext&, const std::string& prefix) override {
    ++calls;
    std::lock_guard lock(mutex_);
    return folder_locked(prefix);
  }

  void expire(const std::string& key) override {
    std::lock_guard lock(mutex_);
    expired_keys.insert(key);
    fresh_until_.reset();
  }
  void expire_prefix(const std::string&) override {
    std::lock_guard lock(mutex_);
    fresh_until_.reset();
  }
  void set_listener(catalog::Listener* listener) override { listener_ = listener; }
  catalog::Skipped skipped() const override { return {skipped_count, {}}; }
  store::ObjectStore& store() override { return *store_; }

  std::atomic<int> calls{0};
  std::set<std::string> expired_keys;
  std::optional<ErrorCode> store_failure;
  std::optional<int> list_fails_after;  ///< so many names in all, then errors
  std::uint64_t skipped_count = 0;

 private:
  Nanos left() const { return std::max(Nanos{0}, Nanos(*fresh_until_ - clock_.now())); }

  Result<void> refresh(const RequestContext& ctx) {
    std::vector<std::pair<std::string, std::string>> changes;
    {
      std::lock_guard lock(mutex_);
      if (fresh_until_ && *fresh_until_ > clock_.now()) return {};
      if (!ctx.may_wait) return fail(ErrorCode::kWouldWaitStore);
      if (store_failure) return fail(*store_failure, "the fake store failed");
      std::set<std::string> seen;
      store::ListRequest request;
      request.prefix = root_;
      for (;;) {
        TRY_ASSIGN(const auto page, store_->list_page(ctx, request));
        for (const auto& info : page.objects) {
          seen.insert(info.key);
          const auto version = store::version_id(store_->id(), info.key, info.etag, info.size);
          auto [at, added] = files_.try_emplace(info.key);
          catalog::File& file = at->second;
          if (!added && file.version == version) continue;
          if (added) {
            file.number = next_number_++;
            file.generation = 1;
          } else {
            ++file.generation;
            changes.push_back(split(info.key));
          }
          file.key = info.key;
          file.size = info.size;
          file.etag = info.etag;
          file.mtime = info.mtime;
          file.version = version;
          file.ino = version.low | 1;
        }
        if (!page.truncated) break;
        request.continuation = page.continuation;
      }
      for (auto at = files_.begin(); at != files_.end();) {
        if (seen.contains(at->first)) {
          ++at;
        } else {
          changes.push_back(split(at->first));
          at = files_.erase(at);
        }
      }
      fresh_until_ = ttl_ == Nanos::max() ? MonoTime::max() : clock_.now() + ttl_;
    }
    for (const auto& [prefix, name] : changes)
      if (listener_ != nullptr) listener_->changed(prefix, name);
    return {};
  }

  static std::pair<std::string, std::string> split(const std::string& key) {
    const auto slash = key.rfind('/');
    const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
    return {key.substr(0, begin), key.substr(begin)};
  }

  catalog::Folder folder_locked(const std::string& prefix) {
    auto [at, added] = folders_.try_emplace(prefix);
    if (added) at->second = {prefix, next_number_++, hash64("folder " + prefix) | 1, 1'600'000'000'000'000'000};
    return at->second;
  }

  const store::ObjectStorePtr store_;
  const std::string root_;
  const Clock& clock_;
  const Nanos ttl_;
  std::mutex mutex_;
  std::map<std::string, catalog::File> files_;
  std::map<std::string, catalog::Folder> folders_;
  catalog::Number next_number_ = catalog::kFirstNumber;
  std::optional<MonoTime> fresh_until_;
  catalog::Listener* listener_ = nullptr;
};

}  // namespace thermo::test
