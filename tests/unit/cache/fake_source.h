#pragma once
// A store in memory whose speed and failures the test decides.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "cache/cache.h"

namespace thermo::cache::testing {

inline std::string random_bytes(std::size_t n, std::uint64_t seed) {
  Rng rng(seed);
  std::string bytes(n, '\0');
  for (std::size_t i = 0; i < n; i += 8) {
    const std::uint64_t word = rng.next();
    std::memcpy(bytes.data() + i, &word, std::min<std::size_t>(8, n - i));
  }
  return bytes;
}

inline ObjectRef make_ref(const std::string& key, std::uint64_t size, const std::string& etag = "\"e1\"") {
  ObjectRef ref;
  ref.store_id = "s3://test/bucket";
  ref.key = key;
  ref.etag = etag;
  ref.size = size;
  ref.version = store::version_id(ref.store_id, key, etag, size);
  return ref;
}

/// Thread-safe. Objects are found by key and etag.
class FakeSource final : public Source {
 public:
  ObjectRef add(const std::string& key, std::uint64_t size, std::uint64_t seed, const std::string& etag = "\"e1\"") {
    const ObjectRef ref = make_ref(key, size, etag);
    std::lock_guard lock(mutex_);
    bodies_[key + etag] = random_bytes(size, seed);
    return ref;
  }
  /// Valid as long as the source.
  const std::string& body(const ObjectRef& ref) const {
    std::lock_guard lock(mutex_);
    return bodies_.at(ref.key + ref.etag);
  }

  Result<void> fetch(const RequestContext& ctx, const ObjectRef& object, ByteRange range, store::BodySink& sink) override {
    std::string bytes;
    std::optional<Error> error;
    std::uint64_t error_after = 0;
    {
      std::unique_lock lock(mutex_);
      ranges_.push_back(range);
      principals_.push_back(ctx.request_id);
      const auto it = bodies_.find(object.key + object.etag);
      if (it == bodies_.end() || removed_.contains(it->first)) return fail(ErrorCode::kPreconditionFailed, "replaced");
      bytes = it->second.substr(range.offset, range.length);
      if (failures_ > 0) {
        --failures_;
        error = error_;
        error_after = error_after_;
        // What a checksum at the end of a body finds: a byte of it is wrong, in each page.
        if (damage_) {
          for (std::size_t at = 4321; at < bytes.size(); at += kPageBytes) bytes[at] = static_cast<char>(bytes[at] ^ 1);
        }
      }
    }
    ++in_flight_;
    max_in_flight_ = std::max(max_in_flight_.load(), in_flight_.load());
    auto result = deliver(ctx, bytes, error, error_after, sink);
    --in_flight_;
    return result;
  }

  /// The next `times` requests fail with `error` after `after` bytes.
  void fail_next(int times, Error error, std::uint64_t after = 0) {
    std::lock_guard lock(mutex_);
    failures_ = times;
    error_ = std::move(error);
    error_after_ = after;
    damage_ = false;
  }
  /// The next `times` requests bring wrong bytes, and tell so only after the last one.
  void damage_next(int times) {
    fail_next(times, Error(ErrorCode::kCorrupt, "checksum of the body"), ~0ull);
    std::lock_guard lock(mutex_);
    damage_ = true;
  }
  /// Requests stop after `bytes` of their body until open_gate() is called.
  void close_gate(std::uint64_t bytes = 0) {
    std::lock_guard lock(mutex_);
    gate_ = bytes;
  }
  void open_gate() {
    std::lock_guard lock(mutex_);
    gate_.reset();
    moved_.notify_all();
  }
  void remove(const ObjectRef& ref) {
    std::lock_guard lock(mutex_);
    removed_.insert(ref.key + ref.etag);
  }
  std::vector<ByteRange> ranges() const {
    std::lock_guard lock(mutex_);
    return ranges_;
  }
  std::vector<std::uint64_t> request_ids() const {
    std::lock_guard lock(mutex_);
    return principals_;
  }
  std::size_t fetches() const { return ranges().size(); }
  int max_in_flight() const { return max_in_flight_; }
  std::size_t chunk = 100'000;

 private:
  Result<void> deliver(const RequestContext& ctx, const std::string& bytes, const std::optional<Error>& error,
                       std::uint64_t error_after, store::BodySink& sink) {
    std::uint64_t at = 0;
    while (true) {
      std::size_t n = std::min<std::size_t>(chunk, bytes.size() - at);
      if (error) n = std::min<std::size_t>(n, error_after - std::min(error_after, at));
      {
        std::unique_lock lock(mutex_);
        while (gate_ && at >= *gate_ && !ctx.stop.stop_requested()) moved_.wait_for(lock, std::chrono::milliseconds(10));
        if (gate_ && !ctx.stop.stop_requested()) n = std::min<std::size_t>(n, *gate_ - at);
      }
      if (error && at >= std::min<std::uint64_t>(error_after, bytes.size())) return fail(*error);
      if (ctx.stop.stop_requested()) return fail(ErrorCode::kCancelled, "stopped");
      TRY(sink.write(std::as_bytes(std::span(bytes.data() + at, n))));
      at += n;
      if (at == bytes.size() && !error) return {};
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable moved_;
  std::map<std::string, std::string> bodies_;
  std::set<std::string> removed_;
  std::vector<ByteRange> ranges_;
  std::vector<std::uint64_t> principals_;
  int failures_ = 0;
  std::optional<Error> error_;
  std::uint64_t error_after_ = 0;
  bool damage_ = false;
  std::optional<std::uint64_t> gate_;
  std::atomic<int> in_flight_{0};
  std::atomic<int> max_in_flight_{0};
};

}  // namespace thermo::cache::testing
