// Real kills: a process that fills, reads and evicts is ended by SIGKILL at a random moment, ten times over one folder.

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <atomic>

#include "cache_fixture.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace thermo::cache::testing {
namespace {

constexpr const char* kFolder = "THERMO_TEST_CACHE_FOLDER";
constexpr const char* kSeed = "THERMO_TEST_SEED";
constexpr std::uint64_t kLimit = 14 * kMiB;

class CacheKillTest : public CacheTest {
 protected:
  std::vector<ObjectRef> add_objects() {
    std::vector<ObjectRef> refs;
    for (std::uint64_t i = 0; i < 9; ++i)
      refs.push_back(source_->add("k" + std::to_string(i), i % 3 == 0 ? 3000 + i * 6000 : i * 600'000, i));
    return refs;
  }
};

/// The process that is killed. Not a test by itself: it runs until somebody ends it.
TEST_F(CacheKillTest, DISABLED_Victim) {
  const char* const folder = std::getenv(kFolder);  // NOLINT(concurrency-mt-unsafe)
  const char* const seed = std::getenv(kSeed);      // NOLINT(concurrency-mt-unsafe)
  ASSERT_TRUE(folder != nullptr && seed != nullptr);
  root_ = folder;
  const auto refs = add_objects();
  source_->chunk = 30'000;
  open(kLimit);
  std::vector<std::thread> users;
  for (std::uint64_t t = 0; t < 3; ++t) {
    users.emplace_back([&, t] {
      Rng rng(std::stoull(seed) * 10 + t);
      while (true) {
        const auto object = open_object(refs[rng.below(refs.size())]);
        const std::uint64_t size = object->ref().size;
        const std::uint64_t offset = rng.below(size);
        if (rng.chance(0.3)) (void)object->prefetch(ctx(Priority::kPrefetch), {offset, size - offset});
        expect_read(object, offset, std::min<std::uint64_t>(size - offset, 1 + rng.below(900'000)));
        if (rng.chance(0.05)) (void)cache_->free(object->ref().version);
        if (::testing::Test::HasFailure()) ::_exit(3);
        if (metric("thermocline_cache_fills_total") > 3) std::ofstream(std::string(folder) + ".ready") << "1";
      }
    });
  }
  for (auto& user : users) user.join();
}

/// Runs the victim on `folder` and kills it some time after it has begun to fill; false when it ended by itself.
bool run_and_kill(const fs::path& folder, std::uint64_t seed, std::chrono::milliseconds after) {
  const fs::path ready = folder.string() + ".ready";
  fs::remove(ready);
  ::setenv(kFolder, folder.c_str(), 1);              // NOLINT(concurrency-mt-unsafe)
  ::setenv(kSeed, std::to_string(seed).c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  std::string self = fs::read_symlink("/proc/self/exe");
  std::string filter = "--gtest_filter=CacheKillTest.DISABLED_Victim";
  std::string also = "--gtest_also_run_disabled_tests";
  std::string brief = "--gtest_brief=1";
  std::array<char*, 5> args = {self.data(), filter.data(), also.data(), brief.data(), nullptr};
  pid_t pid = 0;
  if (::posix_spawn(&pid, self.c_str(), nullptr, nullptr, args.data(), environ) != 0) return false;
  int status = 0;
  bool alive = true;
  for (int i = 0; i < 30'000 && alive && !fs::exists(ready); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    alive = ::waitpid(pid, &status, WNOHANG) == 0;
  }
  if (!alive) return false;
  std::this_thread::sleep_for(after);
  ::kill(pid, SIGKILL);
  return ::waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

TEST_F(CacheKillTest, NeverAWrongByteAfterTenKills) {
  const auto refs = add_objects();
  Rng rng(11);
  for (std::uint64_t round = 0; round < 10; ++round) {
    // The victim itself checks all it reads of what its predecessors left.
    ASSERT_TRUE(run_and_kill(root_, round, std::chrono::milliseconds(rng.below(120)))) << "round " << round;
  }
  source_->fail_next(1 << 30, Error(ErrorCode::kUnavailable, "only what is on disk counts"));
  open(kLimit);
  std::uint64_t kept = 0;
  for (const auto& ref : refs) {
    const auto object = open_object(ref);
    for (std::uint64_t at = 0; at < ref.size; at += 65536) {
      const std::uint64_t length = std::min<std::uint64_t>(65536, ref.size - at);
      const auto bytes = read(object, at, length);
      if (!bytes) {
        EXPECT_EQ(bytes.error().code(), ErrorCode::kUnavailable);
        continue;
      }
      ASSERT_TRUE(*bytes == std::string_view(source_->body(ref)).substr(at, length)) << ref.key << " at " << at;
      kept += length;
    }
  }
  EXPECT_GT(kept, 2 * kMiB);
  EXPECT_EQ(metric("thermocline_cache_corrupt_blocks_total"), 0);  // the kernel had all that was written
  EXPECT_TRUE(eventually([&] { return cache_->status().used_bytes == disk_usage(); }))
      << cache_->status().used_bytes << " charged, " << disk_usage() << " on disk";
  EXPECT_LE(disk_usage(), kLimit);
}

}  // namespace
}  // namespace thermo::cache::testing
