#pragma once
// A mount over a store in memory, a fake catalog view and a fake cache.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "store/memory/memory_store.h"
#include "unit/vfs/fake_cache.h"
#include "unit/vfs/fake_view.h"
#include "vfs/vfs.h"

namespace thermo::vfs {

class RecordingKernel final : public KernelCache {
 public:
  void invalidate_entry(NodeId parent, const std::string& name) override {
    std::lock_guard lock(mutex_);
    calls_.emplace_back(parent, name);
  }
  std::vector<std::pair<NodeId, std::string>> calls() {
    std::lock_guard lock(mutex_);
    return calls_;
  }
  bool told(NodeId parent, const std::string& name) {
    const auto all = calls();
    return std::find(all.begin(), all.end(), std::pair(parent, name)) != all.end();
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<NodeId, std::string>> calls_;
};

class VfsFixture : public testing::Test {
 protected:
  static constexpr Nanos kTtl = std::chrono::seconds(60);

  explicit VfsFixture(std::string root = {}) : root_(std::move(root)) { start(); }

  /// Ends a mount and begins another on the same catalog and cache: what a restart of the daemon is to the kernel.
  void start() {
    vfs_.reset();
    Options options;
    options.root_prefix = root_;
    options.uid = 9001;
    options.gid = 9003;
    options.store_name = "s3://bucket/" + root_;
    options.admin_socket = "/run/thermo.sock";
    options.clock = &clock_;
    options.metrics = &metrics_;
    vfs_ = make_vfs(view_, cache_, memory_, options);
    vfs_->set_kernel_cache(&kernel_);
  }
  ~VfsFixture() override { vfs_->set_kernel_cache(nullptr); }

  void put(const std::string& key, const std::string& body) {
    ASSERT_TRUE(store_->put(ctx_, key, std::as_bytes(std::span(body)), {}));
  }
  void remove(const std::string& key) { ASSERT_TRUE(store_->remove(ctx_, {key})); }
  void pass_ttl() { clock_.advance(kTtl + std::chrono::seconds(1)); }

  Entry find(NodeId parent, std::string_view name) {
    auto entry = vfs_->lookup(ctx_, parent, name);
    EXPECT_TRUE(entry) << entry.error().describe();
    return entry ? *entry : Entry{};
  }
  HandleId open(NodeId node) {
    auto handle = vfs_->open(ctx_, node, 0);
    EXPECT_TRUE(handle) << handle.error().describe();
    return handle ? *handle : 0;
  }
  Result<std::string> read(NodeId node, HandleId handle, std::uint64_t offset = 0, std::uint64_t length = 1u << 20) {
    TRY_ASSIGN(const auto reply, vfs_->read(ctx_, node, handle, {offset, length}, {}, false));
    std::string text;
    for (const auto& slice : reply.slices) text.append(reinterpret_cast<const char*>(slice.bytes.data()), slice.bytes.size());
    return text;
  }
  template <class T>
  static ErrorCode code_of(const Result<T>& result) {
    return result ? ErrorCode::kInternal : result.error().code();
  }

  struct Listed {
    std::string name;
    std::uint64_t cookie;
    Entry entry;
  };
  /// Up to `max` entries after `cookie`.
  Result<std::vector<Listed>> list(NodeId node, HandleId handle, std::uint64_t cookie, std::size_t max) {
    std::vector<Listed> out;
    TRY(vfs_->read_dir(ctx_, node, handle, cookie, [&](const DirEntry& e) {
      if (out.size() == max) return false;
      out.push_back({std::string(e.name), e.cookie, e.entry});
      return true;
    }));
    return out;
  }

  const std::string root_;
  FakeClock clock_;
  metrics::Registry metrics_;
  MemoryBudget memory_{256u << 20};
  RequestContext ctx_;
  store::ObjectStorePtr store_ = store::make_memory_store("vfs", clock_);
  std::shared_ptr<test::FakeView> view_ = std::make_shared<test::FakeView>(store_, root_, clock_, kTtl);
  test::FakeCache cache_;
  RecordingKernel kernel_;
  std::unique_ptr<Vfs> vfs_;
};

}  // namespace thermo::vfs
