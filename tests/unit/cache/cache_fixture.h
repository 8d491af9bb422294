#pragma once
// A cache on a folder of its own, a source, and the means to look at both.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "cache/layout.h"
#include "fake_source.h"
#include "faulty_disk.h"

namespace thermo::cache::testing {

namespace fs = std::filesystem;
inline constexpr std::uint64_t kMiB = 1u << 20;

class CacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    base_ = fs::temp_directory_path() /
            ("thermo-cache-" + std::to_string(::getpid()) + "-" + info->test_suite_name() + "-" + info->name());
    fs::remove_all(base_);
    root_ = base_ / "tier";
    fs::create_directories(root_);
  }
  void TearDown() override {
    cache_.reset();
    EXPECT_EQ(memory_->used(), 0u) << "buffer memory was not given back";
    fs::remove_all(base_);
  }

  void open(std::uint64_t limit = 1024 * kMiB) {
    const auto opened = try_open(limit);
    ASSERT_TRUE(opened) << opened.error().describe();
  }
  Result<void> try_open(std::uint64_t limit) {
    auto disk = io::open_disk(root_.string());
    if (!disk) return fail(std::move(disk).error());
    Options options;
    options.disk = std::make_shared<FaultyDisk>(std::move(*disk), faults_);
    options.limit_bytes = limit;
    options.fill_threads = fill_threads_;
    options.device_threads = 4;
    options.crc_cache_bytes = crc_cache_bytes_;
    options.memory = memory_.get();
    options.metrics = &registry_;
    options.clock = &clock_;
    auto cache = open_cache(options);
    if (!cache) return fail(std::move(cache).error());
    cache_ = std::move(*cache);
    return {};
  }
  void close() { cache_.reset(); }
  /// The next start finds what a killed process would have left: no orderly end was noted.
  void mark_unclean() const { fs::remove(root_ / "clean"); }

  /// A smaller or larger buffer budget; before open().
  void set_memory(std::uint64_t bytes) { memory_ = std::make_unique<MemoryBudget>(bytes); }

  RequestContext ctx(Priority priority = Priority::kForeground) const {
    RequestContext c;
    c.priority = priority;
    c.request_id = next_request_id();
    return c;
  }

  static Result<std::string> read(Object& object, const RequestContext& c, ByteRange range) {
    std::vector<std::byte> scratch(range.length, std::byte{0xee});
    auto reply = object.read(c, range, scratch);
    if (!reply) return fail(std::move(reply).error());
    std::string bytes;
    for (const auto& slice : reply->slices) bytes.append(reinterpret_cast<const char*>(slice.bytes.data()), slice.bytes.size());
    return bytes;
  }
  Result<std::string> read(const ObjectPtr& object, std::uint64_t offset, std::uint64_t length) const {
    return read(*object, ctx(), {offset, length});
  }
  /// Expects the source's bytes.
  void expect_read(const ObjectPtr& object, std::uint64_t offset, std::uint64_t length) const {
    const auto bytes = read(object, offset, length);
    ASSERT_TRUE(bytes) << bytes.error().describe();
    const auto want = std::string_view(source_->body(object->ref())).substr(offset, length);
    ASSERT_EQ(bytes->size(), want.size());
    ASSERT_TRUE(*bytes == want) << "wrong bytes in " << offset << "+" << length;
  }
  void expect_read_all(const ObjectPtr& object, std::uint64_t step = kMiB) const {
    for (std::uint64_t at = 0; at < object->ref().size; at += step) {
      ASSERT_NO_FATAL_FAILURE(expect_read(object, at, std::min(step, object->ref().size - at)));
    }
  }
  ObjectPtr open_object(const ObjectRef& ref) { return cache_->open(ref, source_); }

  static bool eventually(const std::function<bool()>& condition, int seconds = 10) {
    for (int i = 0; i < seconds * 200; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return condition();
  }
  [[nodiscard]] bool idle() const {
    return metric("thermocline_cache_fills_running") == 0 && metric("thermocline_cache_pending_writes") == 0;
  }
  /// Waits until every fill is on disk, with all that the next process will believe of it.
  void settle(const ObjectPtr& object) const {
    ASSERT_TRUE(eventually([&] { return object->residency().filling == 0 && idle(); }));
  }
  /// The same where the device takes nothing: then every page is held in memory, for a while that begins only now.
  void settle_held() const {
    ASSERT_TRUE(eventually([&] { return idle(); }));
  }
  void fill_all(const ObjectPtr& object) const {
    ASSERT_NO_FATAL_FAILURE(expect_read_all(object));
    settle(object);
    ASSERT_EQ(object->residency().resident, object->ref().size);
  }

  std::int64_t metric(const std::string& name) const {
    std::int64_t sum = 0;
    for (const auto& [key, value] : registry_.snapshot()) {
      if (key == name || key.starts_with(name + "{")) sum += value;
    }
    return sum;
  }
  std::uint64_t served(const std::string& tier) {
    return registry_.counter("thermocline_bytes_served_total", "", {{"tier", tier}}).value();
  }
  fs::path object_file(const ObjectRef& ref) const { return root_ / object_path(ref.version); }
  fs::path sidecar_file(const ObjectRef& ref) const { return root_ / sidecar_path(ref.version); }
  /// What the file system charges for object files and sidecars.
  std::uint64_t disk_usage() const {
    std::uint64_t sum = 0;
    std::error_code ec;
    for (auto it = fs::recursive_directory_iterator(root_ / "objects", ec); it != fs::recursive_directory_iterator();
         it.increment(ec)) {
      if (ec) break;
      struct stat st{};
      if (::stat(it->path().c_str(), &st) == 0 && S_ISREG(st.st_mode)) sum += static_cast<std::uint64_t>(st.st_blocks) * 512;
    }
    return sum;
  }
  static void overwrite(const fs::path& path, std::uint64_t offset, const std::string& bytes) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    ASSERT_TRUE(file) << path;
    file.seekp(static_cast<std::streamoff>(offset));
    file << bytes;
  }
  static void flip(const fs::path& path, std::uint64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    ASSERT_TRUE(file) << path;
    file.seekg(static_cast<std::streamoff>(offset));
    const char old = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(old ^ 0x10));
  }

  fs::path base_;
  fs::path root_;
  std::size_t fill_threads_ = 16;
  std::uint64_t crc_cache_bytes_ = 1u << 20;
  std::shared_ptr<Faults> faults_ = std::make_shared<Faults>();
  std::shared_ptr<FakeSource> source_ = std::make_shared<FakeSource>();
  FakeClock clock_;
  metrics::Registry registry_;
  std::unique_ptr<MemoryBudget> memory_ = std::make_unique<MemoryBudget>(128 * kMiB);
  std::unique_ptr<Cache> cache_;
};

}  // namespace thermo::cache::testing
