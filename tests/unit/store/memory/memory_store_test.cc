#include "store/memory/memory_store.h"

#include <set>

#include "base/rng.h"
#include "unit/store/store_testing.h"

namespace thermo::store {
namespace {

using namespace testing;  // NOLINT: test helpers

ErrorCode code_of(const auto& result) { return result ? ErrorCode::kInternal : result.error().code(); }

TEST(MemoryStore, KeepsWhatWasPut) {
  FakeClock clock;
  auto store = make_memory_store("t", clock);
  EXPECT_EQ(store->id(), "memory:///t");
  PutOptions options;
  options.content_type = "text/plain";
  options.metadata["mode"] = "0644";
  const auto etag = put_ok(*store, "dt=2024/a b%2F+\n", "hello", options);
  EXPECT_EQ(etag.front(), '"');
  const auto info = store->head({}, "dt=2024/a b%2F+\n");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->size, 5U);
  EXPECT_EQ(info->etag, etag);
  EXPECT_EQ(info->mtime, clock.wall());
  EXPECT_EQ(info->content_type, "text/plain");
  EXPECT_EQ(info->metadata.at("mode"), "0644");
  EXPECT_EQ(get_all(*store, "dt=2024/a b%2F+\n"), "hello");
  EXPECT_EQ(get_all(*store, "nothing"), "!not_found");
  put_ok(*store, "empty", "");
  EXPECT_EQ(get_all(*store, "empty"), "");
}

TEST(MemoryStore, ServesRangesOfTheVersionAskedFor) {
  auto store = make_memory_store("t");
  const std::string body(1'000'000, 'x');
  const auto old_etag = put_ok(*store, "k", body);
  StringSink sink;
  auto got = store->get_range({}, "k", old_etag, body.size(), {10, 600'000}, sink);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->etag, old_etag);
  EXPECT_EQ(got->object_size, body.size());
  EXPECT_EQ(sink.text.size(), 600'000U);
  EXPECT_GT(sink.pieces, 1U);

  put_ok(*store, "k", "new");
  StringSink nothing;
  EXPECT_EQ(code_of(store->get_range({}, "k", old_etag, body.size(), {0, 3}, nothing)), ErrorCode::kPreconditionFailed);
  EXPECT_EQ(nothing.pieces, 0U);
  EXPECT_EQ(code_of(store->get_range({}, "k", "", 3, {2, 2}, nothing)), ErrorCode::kInvalidRange);
  EXPECT_EQ(code_of(store->get_range({}, "k", "", 3, {1, ~std::uint64_t{0}}, nothing)), ErrorCode::kInvalidRange);
  EXPECT_EQ(code_of(store->get_range({}, "gone", "", 3, {0, 1}, nothing)), ErrorCode::kNotFound);
}

TEST(MemoryStore, SinkErrorEndsTheTransfer) {
  auto store = make_memory_store("t");
  put_ok(*store, "k", std::string(2'000'000, 'x'));
  StringSink sink;
  sink.fail_at = 1;
  EXPECT_EQ(code_of(store->get_range({}, "k", "", 2'000'000, {0, 2'000'000}, sink)), ErrorCode::kNoSpace);
  EXPECT_EQ(sink.pieces, 1U);
}

TEST(MemoryStore, WriteConditions) {
  auto store = make_memory_store("t");
  PutOptions create;
  create.if_none_match = true;
  const auto first = put_ok(*store, "k", "1", create);
  EXPECT_EQ(code_of(store->put({}, "k", bytes_of("2"), create)), ErrorCode::kPreconditionFailed);
  PutOptions replace;
  replace.if_match = first;
  put_ok(*store, "k", "2", replace);
  EXPECT_EQ(code_of(store->put({}, "k", bytes_of("3"), replace)), ErrorCode::kPreconditionFailed);
  EXPECT_EQ(code_of(store->put({}, "missing", bytes_of("3"), replace)), ErrorCode::kNotFound);
  EXPECT_EQ(get_all(*store, "k"), "2");
  EXPECT_EQ(code_of(store->put({}, "", bytes_of("3"), {})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(store->put({}, std::string(1025, 'k'), bytes_of("3"), {})), ErrorCode::kNameTooLong);
  put_ok(*store, std::string(1024, 'k'), "long");
}

TEST(MemoryStore, RemovesInBatches) {
  auto store = make_memory_store("t");
  put_ok(*store, "a", "1");
  put_ok(*store, "a/b", "2");
  const auto failures = store->remove({}, {"a", "never-there"});
  ASSERT_TRUE(failures);
  EXPECT_TRUE(failures->empty());
  EXPECT_EQ(list_all(*store, {}), Names{"a/b"});
  EXPECT_EQ(code_of(store->remove({}, std::vector<std::string>(1001, "x"))), ErrorCode::kInvalidArgument);
}

TEST(MemoryStore, EndsByDeadlineAndStop) {
  FakeClock clock;
  auto store = make_memory_store("t", clock);
  put_ok(*store, "k", "1");
  auto ctx = RequestContext::with_timeout(clock, std::chrono::seconds(1));
  EXPECT_TRUE(store->head(ctx, "k"));
  clock.advance(std::chrono::seconds(2));
  EXPECT_EQ(code_of(store->head(ctx, "k")), ErrorCode::kTimeout);
  std::stop_source stop;
  RequestContext stopped;
  stopped.stop = stop.get_token();
  stop.request_stop();
  EXPECT_EQ(code_of(store->list_page(stopped, {})), ErrorCode::kCancelled);
}

TEST(MemoryStoreList, FlatAndGrouped) {
  auto store = make_memory_store("t");
  for (const char* key : {"a", "a!", "a-b", "a/", "a/1", "a/x/2", "a//", "b/c", "q", "q!c", "q/z", "z"}) put_ok(*store, key, "");
  EXPECT_EQ(list_all(*store, {}), (Names{"a", "a!", "a-b", "a/", "a//", "a/1", "a/x/2", "b/c", "q", "q!c", "q/z", "z"}));
  EXPECT_EQ(list_all(*store, listing("", "/")), (Names{"a", "a!", "a-b", "<a/>", "<b/>", "q", "q!c", "<q/>", "z"}));
  EXPECT_EQ(list_all(*store, listing("a/", "/")), (Names{"a/", "<a//>", "a/1", "<a/x/>"}));
  EXPECT_EQ(list_all(*store, listing("a")), (Names{"a", "a!", "a-b", "a/", "a//", "a/1", "a/x/2"}));
  EXPECT_EQ(list_all(*store, listing("nothing")), Names{});
}

TEST(MemoryStoreList, MaxKeysCountsGroups) {
  auto store = make_memory_store("t");
  for (const char* key : {"q!c", "q/1", "q/2", "r"}) put_ok(*store, key, "");
  auto page = store->list_page({}, listing("q", "/", "", 1));
  ASSERT_TRUE(page);
  EXPECT_EQ(names(*page), (Names{"q!c", "+"}));
  page = store->list_page({}, listing("q", "/", "", 1, page->continuation));
  ASSERT_TRUE(page);
  EXPECT_EQ(names(*page), (Names{"<q/>"}));  // no mark: nothing follows the group under this prefix
  page = store->list_page({}, listing("", "", "", 0));
  ASSERT_TRUE(page);
  EXPECT_EQ(names(*page), Names{});
  EXPECT_EQ(code_of(store->list_page({}, listing("", "", "", 1000, "q"))), ErrorCode::kInvalidArgument);
}

TEST(MemoryStoreList, StartAfter) {
  auto store = make_memory_store("t");
  for (const char* key : {"a/1", "a/2", "b", "c/1"}) put_ok(*store, key, "");
  EXPECT_EQ(list_all(*store, listing("", "", "a/1")), (Names{"a/2", "b", "c/1"}));
  EXPECT_EQ(list_all(*store, listing("", "/", "a")), (Names{"<a/>", "b", "<c/>"}));
  EXPECT_EQ(list_all(*store, listing("", "/", "a/")), (Names{"b", "<c/>"}));
  EXPECT_EQ(list_all(*store, listing("", "/", "a/1")), (Names{"b", "<c/>"}));
  EXPECT_EQ(list_all(*store, listing("a/", "", "b")), Names{});
}

// Any page size gives the same listing, and it is what a plain definition of S3's grouping says.
TEST(MemoryStoreList, SeededTreesAgreeWithTheDefinition) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    auto store = make_memory_store("t");
    std::set<std::string> keys;
    for (int i = 0; i < 80; ++i) {
      std::string key;
      for (auto n = 1 + rng.below(6); n > 0; --n) key += "ab/-\xff"[rng.below(5)];
      keys.insert(key);
      put_ok(*store, key, "");
    }
    for (const std::string prefix : {"", "a", "a/", "\xff", "b-"}) {
      for (const std::string delimiter : {"", "/"}) {
        Names want;
        std::set<std::string> groups;
        for (const auto& key : keys) {
          if (!key.starts_with(prefix)) continue;
          const auto cut = delimiter.empty() ? std::string::npos : key.find('/', prefix.size());
          if (cut == std::string::npos) want.push_back(key);
          else if (groups.insert(key.substr(0, cut + 1)).second) want.push_back("<" + key.substr(0, cut + 1) + ">");
        }
        for (const std::uint32_t size : {1U, 2U, 7U, 1000U}) {
          EXPECT_EQ(list_all(*store, listing(prefix, delimiter, "", size)), want)
              << "seed " << seed << " prefix '" << prefix << "' delimiter '" << delimiter << "' page " << size;
        }
      }
    }
  }
}

}  // namespace
}  // namespace thermo::store
