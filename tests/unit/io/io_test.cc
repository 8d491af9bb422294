#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/rng.h"
#include "io/file.h"
#include "io/kv_store.h"

namespace thermo::io {
namespace {

namespace fs = std::filesystem;

class TempFolder {
 public:
  TempFolder() : path_(fs::temp_directory_path() / ("thermo_io_" + Rng::from_os().hex(12))) { fs::create_directories(path_); }
  ~TempFolder() { fs::remove_all(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

TEST(Disk, CreatesItsFolderNarrow) {
  const TempFolder temp;
  auto disk = open_disk(temp.path() + "/a/b");
  ASSERT_TRUE(disk) << disk.error().describe();
  struct stat st{};
  ASSERT_EQ(::stat((temp.path() + "/a/b").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0750u);
}

TEST(Disk, AFileInTheWayIsNamed) {
  const TempFolder temp;
  std::ofstream(temp.path() + "/file") << "x";
  auto disk = open_disk(temp.path() + "/file");
  ASSERT_FALSE(disk);
  EXPECT_NE(disk.error().message().find("/file"), std::string_view::npos);
}

TEST(File, ReadsWritesAndCountsBlocks) {
  const TempFolder temp;
  auto disk = open_disk(temp.path()).value();
  auto file = disk->open("f", OpenMode::kCreate).value();
  ASSERT_TRUE(file->truncate(3u << 20));
  ASSERT_TRUE(file->write_at(1u << 20, bytes("hello")));
  std::array<std::byte, 8> buffer{};
  ASSERT_EQ(file->read_at(1u << 20, buffer).value(), 8u);
  EXPECT_EQ(std::memcmp(buffer.data(), "hello\0\0\0", 8), 0);
  EXPECT_EQ(file->read_at((3u << 20) - 3, buffer).value(), 3u) << "short only at the end";
  EXPECT_EQ(file->size().value(), 3u << 20);
  EXPECT_LT(file->allocated().value(), 64u << 10) << "sparse";
  const auto nowait = file->read_at_nowait(1u << 20, buffer);
  ASSERT_TRUE(nowait) << "just written, so in the page cache";
  EXPECT_EQ(std::memcmp(buffer.data(), "hello", 5), 0);
}

TEST(File, MissingIsNotFound) {
  const TempFolder temp;
  auto disk = open_disk(temp.path()).value();
  EXPECT_EQ(disk->open("nope", OpenMode::kRead).error().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(disk->remove("nope"));
  EXPECT_FALSE(disk->list("nope"));
}

TEST(Kv, PutsScansAndSeeks) {
  const TempFolder temp;
  auto kv = open_kv({temp.path() + "/db"}).value();
  KvBatch batch;
  for (const char* key : {"a", "b/1", "b/2", "b/3", "c"}) batch.put(key, std::string("v") + key);
  ASSERT_TRUE(kv->write(batch));
  EXPECT_EQ(kv->get("b/2").value(), "vb/2");
  EXPECT_EQ(kv->get("zz").value(), std::nullopt);
  std::vector<std::string> seen;
  ASSERT_TRUE(kv->scan("a", [&](std::string_view key, std::string_view, KvStore::Cursor& cursor) {
    seen.emplace_back(key);
    if (key == "b/1") cursor.seek = "b0";  // past the folder
    return true;
  }));
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b/1", "c"}));
  KvBatch removal;
  removal.remove("a");
  ASSERT_TRUE(kv->write(removal, true));
  EXPECT_EQ(kv->get("a").value(), std::nullopt);
}

TEST(Kv, KeepsAcrossReopenAndIsLockedMeanwhile) {
  const TempFolder temp;
  const KvOptions options{temp.path() + "/db"};
  {
    auto kv = open_kv(options).value();
    KvBatch batch;
    batch.put("k", "v");
    ASSERT_TRUE(kv->write(batch));
    EXPECT_EQ(open_kv(options).error().code(), ErrorCode::kBusy);
  }
  EXPECT_EQ(open_kv(options).value()->get("k").value(), "v");
}

TEST(Kv, DamageIsCorruptAndDestroyStartsAnew) {
  const TempFolder temp;
  const KvOptions options{temp.path() + "/db"};
  {
    auto kv = open_kv(options).value();
    KvBatch batch;
    for (int i = 0; i < 1000; ++i) batch.put("key" + std::to_string(i), std::string(100, 'x'));
    ASSERT_TRUE(kv->write(batch));
    ASSERT_TRUE(kv->flush());
  }
  for (const auto& entry : fs::directory_iterator(options.path)) {
    if (entry.path().filename().string().starts_with("MANIFEST")) std::ofstream(entry.path(), std::ios::trunc) << "garbage";
  }
  auto kv = open_kv(options);
  ASSERT_FALSE(kv);
  EXPECT_EQ(kv.error().code(), ErrorCode::kCorrupt) << kv.error().describe();
  ASSERT_TRUE(destroy_kv(options.path));
  EXPECT_TRUE(open_kv(options));
}

}  // namespace
}  // namespace thermo::io
