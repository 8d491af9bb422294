#include "store/file/file_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "unit/store/file/temp_tree.h"
#include "unit/store/store_testing.h"

namespace thermo::store {
namespace {

using namespace testing;  // NOLINT: test helpers

ErrorCode code_of(const auto& result) { return result ? ErrorCode::kInternal : result.error().code(); }

class FileStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = make_file_store(tree_.root());
    ASSERT_TRUE(made);
    store_ = *made;
  }
  TempTree tree_;
  ObjectStorePtr store_;
};

TEST_F(FileStoreTest, NamesItsRoot) {
  EXPECT_EQ(store_->id(), "file://" + tree_.root());
  tree_.folder("d");
  tree_.link("d", "l");
  EXPECT_EQ((*make_file_store(tree_.path("l/../l")))->id(), "file://" + tree_.path("d"));
  const auto missing = make_file_store(tree_.path("nothing"));
  EXPECT_EQ(code_of(missing), ErrorCode::kInvalidArgument);
  EXPECT_NE(missing.error().message().find(tree_.path("nothing")), std::string::npos);
  tree_.file("f");
  EXPECT_EQ(code_of(make_file_store(tree_.path("f"))), ErrorCode::kInvalidArgument);
}

TEST_F(FileStoreTest, ReadsFilesAndFolders) {
  tree_.file("a/b c", "hello");
  tree_.folder("a/empty");
  EXPECT_EQ(get_all(*store_, "a/b c"), "hello");
  const auto info = store_->head({}, "a/b c");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->size, 5U);
  EXPECT_EQ(info->etag.front(), '"');
  EXPECT_GT(info->mtime, 1'600'000'000'000'000'000);
  EXPECT_EQ(get_all(*store_, "a/empty/"), "");
  EXPECT_EQ(get_all(*store_, "a"), "!not_found");
  EXPECT_EQ(get_all(*store_, "a/b c/"), "!not_found");
  EXPECT_EQ(get_all(*store_, "a/b c/d"), "!not_found");
  EXPECT_EQ(get_all(*store_, std::string(300, 'n')), "!not_found");
}

TEST_F(FileStoreTest, RefusesKeysThatLeaveTheRoot) {
  tree_.file("a/f");
  for (const std::string key : {"../x", "a/../a/f", "/etc/passwd", "a//f", "./a/f", "a/.", "..", "", "/"}) {
    EXPECT_EQ(code_of(store_->head({}, key)), ErrorCode::kInvalidArgument) << key;
    EXPECT_EQ(code_of(store_->put({}, key, {}, {})), ErrorCode::kInvalidArgument) << key;
  }
  EXPECT_EQ(code_of(store_->head({}, std::string("a\0b", 3))), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(store_->head({}, "a/.thermo-put.12")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(store_->head({}, std::string(1025, 'k'))), ErrorCode::kNameTooLong);
  const auto failures = store_->remove({}, {"../x", "a/f"});
  ASSERT_TRUE(failures);
  ASSERT_EQ(failures->size(), 1U);
  EXPECT_EQ(failures->front().key, "../x");
  EXPECT_FALSE(std::filesystem::exists(tree_.path("a/f")));
}

TEST_F(FileStoreTest, RangesAndVersions) {
  tree_.file("f", std::string(2'000'000, 'o'));
  const auto old = *store_->head({}, "f");
  StringSink sink;
  const auto got = store_->get_range({}, "f", old.etag, old.size, {100, 1'500'000}, sink);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->object_size, 2'000'000U);
  EXPECT_EQ(sink.text, std::string(1'500'000, 'o'));
  EXPECT_GT(sink.pieces, 1U);
  EXPECT_EQ(code_of(store_->get_range({}, "f", old.etag, old.size, {1'999'999, 2}, sink)), ErrorCode::kInvalidRange);

  tree_.file("f", std::string(2'000'000, 'n'));  // in place: the inode and the size stay
  StringSink nothing;
  EXPECT_EQ(code_of(store_->get_range({}, "f", old.etag, old.size, {0, 10}, nothing)), ErrorCode::kPreconditionFailed);
  EXPECT_EQ(nothing.pieces, 0U);
}

// Edits in place at full speed: whatever a read delivers before it ends, or fails, is of one version.
TEST_F(FileStoreTest, EditInPlaceNeverMixes) {
  constexpr std::size_t kSize = 3'000'000;
  tree_.file("f", std::string(kSize, 'a'));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (char c = 'b'; !stop; c = c == 'z' ? 'a' : static_cast<char>(c + 1)) {
      const int fd = ::open(tree_.path("f").c_str(), O_WRONLY);
      const std::string body(kSize, c);
      EXPECT_EQ(::write(fd, body.data(), body.size()), static_cast<ssize_t>(kSize));
      ::close(fd);
      std::this_thread::sleep_for(std::chrono::milliseconds(c % 2 == 0 ? 1 : 30));
    }
  });
  int whole = 0;
  int refused = 0;
  for (int i = 0; i < 60; ++i) {
    StringSink sink;
    const auto info = store_->head({}, "f");
    ASSERT_TRUE(info);
    const auto got = store_->get_range({}, "f", info->etag, kSize, {0, kSize}, sink);
    if (got) {
      ++whole;
      EXPECT_EQ(sink.text.size(), kSize);
    } else {
      ++refused;
      EXPECT_EQ(got.error().code(), ErrorCode::kPreconditionFailed);
    }
    EXPECT_EQ(sink.text.find_first_not_of(sink.text.empty() ? 'a' : sink.text[0]), std::string::npos) << "versions mixed";
  }
  stop = true;
  writer.join();
  EXPECT_GT(refused + whole, 0);
}

TEST_F(FileStoreTest, FileCutWhileItIsRead) {
  tree_.file("f", std::string(2'000'000, 'x'));
  class Cutter final : public BodySink {
   public:
    explicit Cutter(std::string path) : path_(std::move(path)) {}
    [[nodiscard]] Result<void> write(std::span<const std::byte> bytes) override {
      seen += bytes.size();
      EXPECT_EQ(::truncate(path_.c_str(), 10), 0);
      return {};
    }
    std::size_t seen = 0;

   private:
    std::string path_;
  } sink(tree_.path("f"));
  EXPECT_EQ(code_of(store_->get_range({}, "f", "", 2'000'000, {0, 2'000'000}, sink)), ErrorCode::kPreconditionFailed);
  EXPECT_LT(sink.seen, 2'000'000U);
}

TEST_F(FileStoreTest, PutMakesFoldersAndReportsTheEtagThatHeadSees) {
  PutOptions options;
  const auto etag = put_ok(*store_, "x/y/z", "body", options);
  EXPECT_EQ(store_->head({}, "x/y/z")->etag, etag);
  EXPECT_EQ(get_all(*store_, "x/y/z", etag), "body");
  put_ok(*store_, "m/", "");
  EXPECT_TRUE(std::filesystem::is_directory(tree_.path("m")));
  EXPECT_EQ(code_of(store_->put({}, "m/", bytes_of("x"), {})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(store_->put({}, "x/y/z/below", bytes_of("x"), {})), ErrorCode::kNotDirectory);
  EXPECT_EQ(code_of(store_->put({}, "x/y", bytes_of("x"), {})), ErrorCode::kIsDirectory);
  EXPECT_EQ(code_of(store_->put({}, std::string(256, 'n'), bytes_of("x"), {})), ErrorCode::kNameTooLong);
  EXPECT_EQ(code_of(store_->put({}, std::string(256, 'n') + "/a", bytes_of("x"), {})), ErrorCode::kNameTooLong);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tree_.root())) {
    EXPECT_EQ(entry.path().filename().string().find(".thermo-put"), std::string::npos) << "left behind: " << entry.path();
  }
}

TEST_F(FileStoreTest, ContentTypeAndMetadataComeBack) {
  PutOptions options;
  options.content_type = "application/parquet";
  options.metadata = {{"rows", "17"}, {"by", ""}};
  const auto info = store_->put({}, "k", bytes_of("1"), options);
  if (!info && info.error().code() == ErrorCode::kNotSupported) GTEST_SKIP() << "no extended attributes below /tmp";
  ASSERT_TRUE(info);
  const auto head = store_->head({}, "k");
  EXPECT_EQ(head->content_type, "application/parquet");
  EXPECT_EQ(head->metadata, options.metadata);
}

TEST_F(FileStoreTest, WriteConditions) {
  PutOptions create;
  create.if_none_match = true;
  const auto first = put_ok(*store_, "k", "1", create);
  EXPECT_EQ(code_of(store_->put({}, "k", bytes_of("2"), create)), ErrorCode::kPreconditionFailed);
  PutOptions replace;
  replace.if_match = first;
  put_ok(*store_, "k", "2", replace);
  EXPECT_EQ(code_of(store_->put({}, "k", bytes_of("3"), replace)), ErrorCode::kPreconditionFailed);
  EXPECT_EQ(code_of(store_->put({}, "missing", bytes_of("3"), replace)), ErrorCode::kNotFound);
  EXPECT_EQ(get_all(*store_, "k"), "2");
  put_ok(*store_, "m/", "", create);
  EXPECT_EQ(code_of(store_->put({}, "m/", {}, create)), ErrorCode::kPreconditionFailed);
}

TEST_F(FileStoreTest, OneCreatorWinsAndOneReplacerWins) {
  std::atomic<int> created{0};
  std::atomic<int> replaced{0};
  const auto etag = put_ok(*store_, "r", "0");
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      PutOptions create;
      create.if_none_match = true;
      if (store_->put({}, "c", bytes_of(std::to_string(t)), create)) ++created;
      PutOptions replace;
      replace.if_match = etag;
      if (store_->put({}, "r", bytes_of(std::to_string(t)), replace)) ++replaced;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(created, 1);
  EXPECT_EQ(replaced, 1);
}

TEST_F(FileStoreTest, RemovesOnlyTheObject) {
  tree_.file("d/one");
  tree_.file("d/two");
  tree_.folder("e");
  ASSERT_EQ(::mkfifo(tree_.path("d/pipe").c_str(), 0600), 0);
  auto failures = store_->remove({}, {"d/one", "d", "d/", "e/", "nothing", "no/such/thing", "d/pipe"});
  ASSERT_TRUE(failures);
  EXPECT_TRUE(failures->empty());
  EXPECT_FALSE(std::filesystem::exists(tree_.path("d/one")));
  EXPECT_TRUE(std::filesystem::exists(tree_.path("d/two")));
  EXPECT_TRUE(std::filesystem::exists(tree_.path("d/pipe"))) << "a pipe is no object";
  EXPECT_FALSE(std::filesystem::exists(tree_.path("e")));
  ASSERT_TRUE(store_->remove({}, {"d/two"}));
  EXPECT_TRUE(std::filesystem::exists(tree_.path("d"))) << "the folder stays";
  EXPECT_EQ(code_of(store_->remove({}, std::vector<std::string>(1001, "x"))), ErrorCode::kInvalidArgument);
}

TEST_F(FileStoreTest, LinksAreFollowed) {
  TempTree outside;
  outside.file("far/f", "far");
  tree_.link(outside.path("far"), "d");
  tree_.link("d/f", "l");
  tree_.link("nowhere", "dangling");
  tree_.link("ring", "ring");
  EXPECT_EQ(get_all(*store_, "d/f"), "far");
  EXPECT_EQ(get_all(*store_, "l"), "far");
  EXPECT_EQ(get_all(*store_, "dangling"), "!not_found");
  EXPECT_EQ(get_all(*store_, "ring"), "!not_found");
}

TEST_F(FileStoreTest, SpecialFilesAreNoObjectsAndNeverHang) {
  ASSERT_EQ(::mkfifo(tree_.path("pipe").c_str(), 0600), 0);
  StringSink sink;
  EXPECT_EQ(code_of(store_->head({}, "pipe")), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(store_->get_range({}, "pipe", "", 1, {0, 1}, sink)), ErrorCode::kNotFound);
}

TEST_F(FileStoreTest, AVanishedRootIsNotAMissingKey) {
  tree_.file("sub/f");
  auto store = *make_file_store(tree_.path("sub"));
  std::filesystem::remove_all(tree_.path("sub"));
  EXPECT_EQ(code_of(store->head({}, "f")), ErrorCode::kNoSuchBucket);
  EXPECT_EQ(code_of(store->list_page({}, listing(""))), ErrorCode::kNoSuchBucket);
  EXPECT_EQ(code_of(store->list_page({}, listing("d/"))), ErrorCode::kNoSuchBucket);
  EXPECT_EQ(code_of(store->put({}, "f", {}, {})), ErrorCode::kNoSuchBucket);
  EXPECT_EQ(code_of(store->put({}, "d/f", {}, {})), ErrorCode::kNoSuchBucket);
  EXPECT_EQ(code_of(store->remove({}, {"f"})), ErrorCode::kNoSuchBucket);
}

TEST_F(FileStoreTest, ContextsAreKept) {
  tree_.file("f");
  const auto hurried = RequestContext{}.waiting(false);
  EXPECT_EQ(code_of(store_->head(hurried, "f")), ErrorCode::kWouldWaitStore);
  RequestContext late;
  late.deadline = Clock::system().now() - std::chrono::seconds(1);
  EXPECT_EQ(code_of(store_->list_page(late, {})), ErrorCode::kTimeout);
  StringSink sink;
  sink.fail_at = 1;
  EXPECT_EQ(code_of(store_->get_range({}, "f", "", 1, {0, 1}, sink)), ErrorCode::kNoSpace);
}

// Runs as another user for a moment where the test is root, whom permissions do not bind.
class AsNobody {
 public:
  AsNobody() : was_root_(::geteuid() == 0) {
    if (was_root_) {
      EXPECT_EQ(::seteuid(65534), 0);
    }
  }
  ~AsNobody() {
    if (was_root_) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  const bool was_root_;
};

TEST_F(FileStoreTest, NoPermissionIsAccessDenied) {
  tree_.file("locked/f");
  tree_.file("z");
  tree_.file("secret");
  ::chmod(tree_.root().c_str(), 0755);
  ::chmod(tree_.path("secret").c_str(), 0);
  ::chmod(tree_.path("locked").c_str(), 0);
  {
    const AsNobody nobody;
    StringSink sink;
    EXPECT_EQ(code_of(store_->get_range({}, "secret", "", 1, {0, 1}, sink)), ErrorCode::kAccessDenied);
    EXPECT_EQ(code_of(store_->head({}, "locked/f")), ErrorCode::kAccessDenied);
    EXPECT_EQ(code_of(store_->list_page({}, listing("locked/"))), ErrorCode::kAccessDenied);
    EXPECT_EQ(list_all(*store_, {}), (Names{"locked/", "secret", "z"})) << "one locked folder must not hide the rest";
    EXPECT_EQ(list_all(*store_, listing("", "/")), (Names{"<locked/>", "secret", "z"}));
    const auto failures = store_->remove({}, {"locked/f"});
    ASSERT_TRUE(failures);
    ASSERT_EQ(failures->size(), 1U);
    EXPECT_EQ(failures->front().error.code(), ErrorCode::kAccessDenied);
  }
  ::chmod(tree_.path("locked").c_str(), 0755);
}

}  // namespace
}  // namespace thermo::store
