// Keys that are awkward as names.

#include <algorithm>

#include "support.h"

namespace thermo::catalog::test {
namespace {

TEST_F(CatalogTest, FolderWinsAndTheObjectIsReachedByItsMark) {
  store_->write("d/fb", "object");
  store_->write("d/fb/foo", "y");
  store_->write("d/fb-c");
  EXPECT_EQ(folder("d/", "fb").prefix, "d/fb/");
  EXPECT_EQ(file("d/", ".object:fb").key, "d/fb") << "asked by name, the folder not listed";
  EXPECT_EQ(file("d/", ".object:fb").size, 6u);
  EXPECT_EQ(names("d/"), (Names{"fb-c", "fb/"})) << "one entry per name, the mark not listed";
  EXPECT_EQ(file("d/", ".object:fb").key, "d/fb");
  EXPECT_EQ(file("d/fb/", "foo").key, "d/fb/foo");
  EXPECT_EQ(look("d/", ".object:fb-c"), std::nullopt) << "only what is hidden is reached so";
  EXPECT_EQ(look("d/", ".object:none"), std::nullopt);
  store_->write("d/.object:x");
  EXPECT_EQ(names("d/"), (Names{"fb-c", "fb/"}));
  view_->expire_prefix("d/");
  EXPECT_EQ(file("d/", ".object:x").key, "d/.object:x") << "an object that is really called so";
}

TEST_F(CatalogTest, FolderBesideObjectComesAndGoes) {
  store_->write("d/n");
  const auto object = file("d/", "n");
  store_->write("d/n/x");
  view_->expire_prefix("");
  const auto same_name = folder("d/", "n");
  EXPECT_NE(same_name.number, object.number);
  EXPECT_EQ(file("d/", ".object:n").number, object.number);
  store_->erase("d/n/x");
  view_->expire_prefix("");
  EXPECT_EQ(names("d/"), Names{"n"});
  EXPECT_EQ(file("d/", "n").number, object.number);
  EXPECT_EQ(view_->by_number({}, same_name.number).error().code(), ErrorCode::kStale);
}

TEST_F(CatalogTest, ImpossibleNamesAreSkippedAndCounted) {
  store_->write("a/ok");
  const Names impossible{
      "a//b", "a/../b", "a/./c", "a//", "/lead", "a/sub/../../x", "a/" + std::string(300, 'n'), std::string("a/nul\0x", 7)};
  for (const auto& key : impossible) store_->write(key);
  EXPECT_EQ(names("a/"), (Names{"ok", "sub/"}));
  EXPECT_EQ(names("a/sub/"), Names{});
  EXPECT_EQ(names(""), Names{"a/"});
  std::this_thread::sleep_for(Millis(50));  // the listing that was overtaken by the subtree's page counts too
  const auto skipped = view_->skipped();
  EXPECT_GE(skipped.count, impossible.size() - 1) << "a delimited listing shows groups, not each key";
  EXPECT_LE(skipped.count, 2 * impossible.size());
  EXPECT_EQ(skipped.examples.size(), std::min<std::size_t>(16, skipped.count));
  (void)names("a/");
  view_->expire_prefix("");
  (void)names("a/");
  EXPECT_EQ(view_->skipped().count, skipped.count) << "the same keys are not counted again";
  for (const std::string_view name : {"", ".", "..", "x/y"}) EXPECT_EQ(look("a/", name), std::nullopt) << name;
  EXPECT_EQ(view_->lookup({}, "a/", std::string(256, 'n')).error().code(), ErrorCode::kNameTooLong);
}

TEST_F(CatalogTest, ManyImpossibleNamesKeepSixteenExamples) {
  for (int i = 0; i < 100; ++i) store_->write("a//" + std::to_string(i) + "/" + std::string(300, 'x'));
  for (int i = 0; i < 100; ++i) store_->write("a/" + std::to_string(i) + std::string(300, 'x'));
  EXPECT_EQ(names("a/"), Names{});
  EXPECT_GE(view_->skipped().count, 100u);
  EXPECT_EQ(view_->skipped().examples.size(), 16u);
}

TEST_F(CatalogTest, MarkersMakeFoldersAndAreNoFiles) {
  store_->write("d/", "");
  store_->write("e/", "with data");
  store_->write("e/f");
  store_->write("h_$folder$", "");
  EXPECT_EQ(folder("", "d").prefix, "d/");
  EXPECT_EQ(names("d/"), Names{});
  EXPECT_EQ(names("e/"), Names{"f"});
  EXPECT_EQ(names(""), (Names{"d/", "e/", "h_$folder$"}));
  EXPECT_EQ(file("", "h_$folder$").key, "h_$folder$");
  EXPECT_EQ(view_->skipped().count, 0u);
}

TEST_F(CatalogTest, FolderGoesWithItsLastKey) {
  store_->write("p/d/f");
  store_->write("p/x");
  EXPECT_EQ(names("p/"), (Names{"d/", "x"}));
  store_->erase("p/d/f");
  EXPECT_EQ(names("p/"), (Names{"d/", "x"})) << "within the TTL";
  clock_.advance(std::chrono::seconds(61));
  EXPECT_EQ(names("p/"), Names{"x"});
  EXPECT_EQ(look("p/", "d"), std::nullopt);
  EXPECT_EQ(names_in(*view_, "p/d/").error().code(), ErrorCode::kNotFound);
}

TEST_F(CatalogTest, BytesAreNamesAsTheyAre) {
  Names want{"\n",  "#",       "%20", "%2F", "&", "+", " ", "?", "\\", "\xc3\xa9", "e\xcc\x81", "\x01", std::string(255, 'z'),
             "...", "\xff\xfe"};
  for (const auto& name : want) store_->write("k/" + name, name);
  std::sort(want.begin(), want.end());
  for (const auto& name : want) EXPECT_EQ(file("k/", name).key, "k/" + name);
  EXPECT_EQ(names("k/"), want);
  EXPECT_EQ(look("k/", "\n\n"), std::nullopt);
  EXPECT_EQ(look("k/", "\xc3"), std::nullopt) << "half a character";
}

TEST_F(CatalogTest, WildNamesInABigFolder) {
  std::vector<std::string> want;
  for (int i = 0; i < 2600; ++i) want.push_back("\xc3\xa9-" + std::to_string(i * 7919 % 100'000));
  for (int i = 0; i < 40; ++i) want.push_back(std::string(static_cast<std::size_t>(i + 1), '\xff'));
  std::sort(want.begin(), want.end());
  want.erase(std::unique(want.begin(), want.end()), want.end());
  for (const auto& name : want) store_->write("w/" + name);
  EXPECT_EQ(names("w/"), want);
}

}  // namespace
}  // namespace thermo::catalog::test
