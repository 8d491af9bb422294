#include "s3sim/list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/rng.h"

namespace thermo::s3sim {
namespace {

class SetCursor final : public KeyCursor {
 public:
  explicit SetCursor(const std::set<std::string>& keys) : keys_(keys), at_(keys.begin()) {}
  void seek(const std::string& key) override { at_ = keys_.lower_bound(key); }
  void next() override { ++at_; }
  bool valid() const override { return at_ != keys_.end(); }
  const std::string& key() const override { return *at_; }
  ObjectPtr object() const override { return object_; }

 private:
  const std::set<std::string>& keys_;
  std::set<std::string>::const_iterator at_;
  ObjectPtr object_ = std::make_shared<const Object>();
};

/// The definition, without any thought of speed: all entries in order, then a window of them.
std::vector<std::string> all_entries(const std::set<std::string>& keys, const ListQuery& query) {
  std::vector<std::string> out;
  for (const auto& key : keys) {
    if (!key.starts_with(query.prefix) || key <= query.after) continue;
    const std::size_t at = query.delimiter.empty() ? std::string::npos : key.find(query.delimiter, query.prefix.size());
    const std::string entry = at == std::string::npos ? key : key.substr(0, at + query.delimiter.size());
    if (query.marker_covers_prefix && at != std::string::npos && query.after.starts_with(entry)) continue;
    if (out.empty() || out.back() != entry) out.push_back(entry);
  }
  return out;
}

std::vector<std::string> names(const ListPage& page) {
  std::vector<std::string> out;
  for (const auto& item : page.items) out.push_back(item.name);
  return out;
}

std::set<std::string> random_keys(Rng& rng, std::size_t count) {
  // '/' and its neighbours in byte order, bytes below and above, so that every way to sort wrongly shows.
  static constexpr std::string_view kAlphabet = "//a!-.0\x01\xff";
  std::set<std::string> keys;
  while (keys.size() < count) {
    std::string key;
    for (std::uint64_t n = 1 + rng.below(6); n > 0; --n) key += kAlphabet[rng.below(kAlphabet.size())];
    keys.insert(key);
  }
  return keys;
}

TEST(List, AgreesWithTheDefinitionForEveryPageSize) {
  Rng rng(20261130);
  for (int round = 0; round < 60; ++round) {
    const auto keys = random_keys(rng, 1 + rng.below(40));
    const std::vector<std::string> some(keys.begin(), keys.end());
    for (const std::string delimiter : {"", "/", "a/", "\xff"}) {
      for (int variant = 0; variant < 12; ++variant) {
        ListQuery query;
        query.delimiter = delimiter;
        query.marker_covers_prefix = variant % 2 == 1;
        const std::string& one = some[rng.below(some.size())];
        if (variant % 3 == 1) query.prefix = one.substr(0, rng.below(one.size() + 1));
        const std::string& other = some[rng.below(some.size())];
        if (variant >= 4) query.after = other.substr(0, 1 + rng.below(other.size()));
        const auto expected = all_entries(keys, query);
        for (std::uint32_t max = 1; max <= expected.size() + 2; ++max) {
          query.max_keys = max;
          query.from.clear();
          std::vector<std::string> got;
          for (;;) {
            SetCursor cursor(keys);
            const ListPage page = list_page(cursor, query);
            ASSERT_LE(page.items.size(), max);
            for (const auto& item : page.items) {
              EXPECT_EQ(item.object == nullptr,
                        !keys.contains(item.name) ||
                            (!delimiter.empty() && item.name.find(delimiter, query.prefix.size()) != std::string::npos));
            }
            const auto part = names(page);
            got.insert(got.end(), part.begin(), part.end());
            ASSERT_EQ(page.truncated, got.size() < expected.size());
            if (!page.truncated) break;
            ASSERT_EQ(page.items.size(), max) << "a page that is not the last is full";
            query.from = page.next;
          }
          ASSERT_EQ(got, expected) << "round " << round << " delimiter '" << delimiter << "' max " << max;
        }
      }
    }
  }
}

TEST(List, MaxKeysZeroIsEmptyAndNotTruncated) {
  const std::set<std::string> keys{"a", "b"};
  SetCursor cursor(keys);
  ListQuery query;
  query.max_keys = 0;
  const auto page = list_page(cursor, query);
  EXPECT_TRUE(page.items.empty());
  EXPECT_FALSE(page.truncated);
}

TEST(List, SlashSortsAmongItsNeighbours) {
  const std::set<std::string> keys{"q!c", "q-a", "q/x", "q/y", "q0", "q"};
  SetCursor cursor(keys);
  ListQuery query;
  query.delimiter = "/";
  EXPECT_EQ(names(list_page(cursor, query)), (std::vector<std::string>{"q", "q!c", "q-a", "q/", "q0"}));
}

TEST(List, StartAfterInsideAPrefixShowsItMarkerDoesNot) {
  const std::set<std::string> keys{"a/1", "a/2", "b"};
  ListQuery query;
  query.delimiter = "/";
  query.after = "a/1";
  SetCursor cursor(keys);
  EXPECT_EQ(names(list_page(cursor, query)), (std::vector<std::string>{"a/", "b"}));
  query.marker_covers_prefix = true;
  EXPECT_EQ(names(list_page(cursor, query)), (std::vector<std::string>{"b"}));
}

TEST(List, ContinuationSurvivesChangesBetweenPages) {
  std::set<std::string> keys{"a/1", "b/1", "c"};
  ListQuery query;
  query.delimiter = "/";
  query.max_keys = 1;
  SetCursor first(keys);
  const auto page = list_page(first, query);
  EXPECT_EQ(page.next, "b/1");
  keys.erase("b/1");
  keys.insert("a/2");
  query.from = page.next;
  SetCursor second(keys);
  EXPECT_EQ(names(list_page(second, query)), std::vector<std::string>{"c"});
}

TEST(List, AfterPrefixSkipsBytesThatCannotGrow) {
  EXPECT_EQ(after_prefix("a/"), "a0");
  EXPECT_EQ(after_prefix("a\xff\xff"), "b");
  EXPECT_EQ(after_prefix("\xff"), "");
  EXPECT_EQ(after_prefix(""), "");
}

}  // namespace
}  // namespace thermo::s3sim
