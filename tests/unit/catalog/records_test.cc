#include "catalog/records.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace thermo::catalog {
namespace {

TEST(KeyLayout, PrefixAlgebra) {
  EXPECT_EQ(prefix_end("a/"), "a0");
  EXPECT_EQ(prefix_end(""), "");
  EXPECT_EQ(prefix_end("a\xff\xff"), "b");
  EXPECT_EQ(parent_prefix("a/b"), "a/");
  EXPECT_EQ(parent_prefix("a/b/"), "a/");
  EXPECT_EQ(parent_prefix("a"), "");
  EXPECT_EQ(parent_prefix(""), "");
  EXPECT_EQ(base_name("a/b/"), "b");
  EXPECT_EQ(base_name("b"), "b");
  EXPECT_EQ(folder_path("a/b/"), "a/b");
  EXPECT_EQ(folder_path(""), "");
}

TEST(KeyLayout, DatabaseOrderIsKeyOrder) {
  Rng rng(7);
  const auto random_key = [&] {
    std::string key;
    for (auto n = rng.below(6); n > 0; --n) key.push_back(static_cast<char>(rng.below(256)));
    return key;
  };
  for (int i = 0; i < 2000; ++i) {
    const auto a = random_key();
    const auto b = random_key();
    EXPECT_EQ(a < b, file_key(3, a) < file_key(3, b));
  }
  EXPECT_LT(file_key(1, "z"), file_key(2, "a"));
  EXPECT_LT(file_key(255, "z"), file_key(256, "a"));
}

TEST(KeyLayout, NamesThatCannotBeShown) {
  for (const std::string_view bad : {"", ".", "..", "a/b"}) EXPECT_FALSE(valid_name(bad)) << bad;
  EXPECT_FALSE(valid_name(std::string_view("a\0b", 3)));
  EXPECT_FALSE(valid_name(std::string(256, 'x')));
  for (const std::string& good :
       {std::string(255, 'x'), std::string("\n"), std::string("..."), std::string("%2F"), std::string("\xc3\xa9")}) {
    EXPECT_TRUE(valid_name(good)) << good;
  }
}

TEST(KeyLayout, ParsedKeys) {
  EXPECT_EQ(parse_key("a/b/c", 2).shape, KeyShape::kFile);
  EXPECT_EQ(parse_key("a/b/c", 2).folders_end, 4u);
  EXPECT_EQ(parse_key("a/b/", 2).shape, KeyShape::kMarker);
  EXPECT_EQ(parse_key("a/", 2).shape, KeyShape::kMarker);
  EXPECT_EQ(parse_key("a//b", 2).shape, KeyShape::kHidden);
  EXPECT_EQ(parse_key("a//b", 2).folders_end, 2u);
  EXPECT_EQ(parse_key("a/b/../c/d", 2).shape, KeyShape::kHidden);
  EXPECT_EQ(parse_key("a/b/../c/d", 2).folders_end, 4u);
  EXPECT_EQ(parse_key("/x", 0).shape, KeyShape::kHidden);
  EXPECT_EQ(parse_key("a//", 2).shape, KeyShape::kHidden);
}

TEST(Records, RoundTrip) {
  const FileRecord file{(Number{1} << 44) - 1, 77, ~0ull, 1ull << 50, -5, 1'700'000'000'000'000'001, true, "\"etag\"", "GLACIER"};
  EXPECT_EQ(decode_file(encode(file)).value(), file);
  const FolderRecord folder{12, 34, 5, 6, 7, 8, 9};
  EXPECT_EQ(decode_folder(encode(folder)).value(), folder);
  const Owner owner{4'000'000'000u, true, "a/b/"};
  EXPECT_EQ(decode_owner(encode(owner)).value(), owner);
}

TEST(Records, DamageIsNoticedNotRead) {
  const std::string file = encode(FileRecord{20, 1, 3, 4, 5, 6, false, "\"e\"", ""});
  const std::string folder = encode(FolderRecord{12, 34, 5, 6, 7, 8, 9});
  for (std::size_t length = 0; length < file.size(); ++length) EXPECT_FALSE(decode_file(file.substr(0, length))) << length;
  for (std::size_t length = 0; length < folder.size(); ++length) EXPECT_FALSE(decode_folder(folder.substr(0, length))) << length;
  EXPECT_FALSE(decode_file(file + "x"));
  EXPECT_FALSE(decode_folder(folder + "x"));
  EXPECT_FALSE(decode_owner("\x01\0\0"));
  auto other = file;
  other[0] = 9;
  EXPECT_EQ(decode_file(other).error().code(), ErrorCode::kCorrupt);
}

TEST(Records, InodesDependOnAllThatMakesAFile) {
  const auto version = store::version_id("s", "k", "e", 1);
  const auto ino = file_ino("s", "k", version);
  EXPECT_EQ(ino, file_ino("s", "k", version));
  EXPECT_NE(ino, file_ino("t", "k", version));
  EXPECT_NE(ino, file_ino("s", "l", version));
  EXPECT_NE(ino, file_ino("s", "k", store::version_id("s", "k", "f", 1)));
  EXPECT_NE(folder_ino("s", "a/"), folder_ino("s", "b/"));
  EXPECT_NE(folder_ino("sa/", ""), folder_ino("s", "a/"));
}

}  // namespace
}  // namespace thermo::catalog
