#pragma once
// A cache in memory: pages of versions in maps, filled from the source by the read that misses them.

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cache/cache.h"

namespace thermo::test {

class FakeCache final : public cache::Cache {
 public:
  struct Version {
    std::mutex mutex;
    std::map<std::uint64_t, std::shared_ptr<std::vector<std::byte>>> pages;
  };

  cache::ObjectPtr open(const cache::ObjectRef& ref, std::shared_ptr<cache::Source> source) override {
    return std::make_shared<Object>(ref, std::move(source), version(ref.version));
  }
  Result<cache::Residency> residency(const RequestContext&, const cache::ObjectRef& ref) override {
    return resident(ref, *version(ref.version));
  }
  std::vector<cache::Location> locations(const cache::ObjectRef&, cache::ByteRange) override { return {}; }
  Result<std::uint64_t> free(const cache::VersionId& id) override {
    const auto v = version(id);
    std::lock_guard lock(v->mutex);
    v->pages.clear();
    return std::uint64_t{0};
  }
  cache::Status status() override { return {}; }
  void set_limit(std::uint64_t) override {}
  void shutdown() override {}

 private:
  struct Collect final : BodySink {
    explicit Collect(std::vector<std::byte>& target) : bytes(target) {}
    Result<void> write(std::span<const std::byte> more) override {
      bytes.insert(bytes.end(), more.begin(), more.end());
      return {};
    }
    std::vector<std::byte>& bytes;
  };

  class Object final : public cache::Object {
   public:
    Object(cache::ObjectRef ref, std::shared_ptr<cache::Source> source, std::shared_ptr<Version> version)
        : ref_(std::move(ref)), source_(std::move(source)), version_(std::move(version)) {}
    const cache::ObjectRef& ref() const override { return ref_; }
    Result<cache::PageReply> read(const RequestContext& ctx, cache::ByteRange range, std::span<std::byte>) override {
      std::lock_guard lock(version_->mutex);
      cache::PageReply reply;
      for (std::uint64_t at = range.offset; at < range.end();) {
        const std::uint64_t page = at / cache::kPageBytes;
        const std::uint64_t start = page * cache::kPageBytes;
        auto& held = version_->pages[page];
        if (held == nullptr) {
          if (!ctx.may_wait) return fail(ErrorCode::kWouldWaitStore);
          auto bytes = std::make_shared<std::vector<std::byte>>();
          Collect sink(*bytes);
          TRY(source_->fetch(ctx, ref_, {start, std::min(cache::kPageBytes, ref_.size - start)}, sink));
          held = std::move(bytes);
        }
        const auto n = std::min(range.end(), start + held->size()) - at;
        reply.slices.push_back(
            {held, std::span<const std::byte>(*held).subspan(static_cast<std::size_t>(at - start), static_cast<std::size_t>(n))});
        at += n;
      }
      return reply;
    }
    std::uint64_t prefetch(const RequestContext&, cache::ByteRange range) override { return range.length; }
    void wait_for_room(const RequestContext&, std::uint64_t) override {}
    void cancel_prefetch() override {}
    cache::Residency residency() const override { return resident(ref_, *version_); }

   private:
    const cache::ObjectRef ref_;
    const std::shared_ptr<cache::Source> source_;
    const std::shared_ptr<Version> version_;
  };

  static cache::Residency resident(const cache::ObjectRef& ref, Version& version) {
    std::lock_guard lock(version.mutex);
    cache::Residency r{ref.size, 0, 0};
    for (const auto& [page, bytes] : version.pages) r.resident += bytes == nullptr ? 0 : bytes->size();
    return r;
  }
  std::shared_ptr<Version> version(const cache::VersionId& id) {
    std::lock_guard lock(mutex_);
    auto& v = versions_[id];
    if (v == nullptr) v = std::make_shared<Version>();
    return v;
  }

  std::mutex mutex_;
  std::map<cache::VersionId, std::shared_ptr<Version>> versions_;
};

}  // namespace thermo::test
