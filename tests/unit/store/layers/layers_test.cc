// check, fault, trace, metrics, and all layers together.

#include "store/layers/layers.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/log.h"
#include "store/memory/memory_store.h"
#include "unit/store/layers/scripted_store.h"
#include "unit/store/store_testing.h"

namespace thermo::store {
namespace {

using namespace testing;  // NOLINT: test helpers

/// Answers with what a test put there.
class Canned final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  [[nodiscard]] Result<ListPage> list_page(const RequestContext&, const ListRequest&) override { return page; }
  [[nodiscard]] Result<GetInfo> get_range(const RequestContext&, const std::string&, const std::string&, std::uint64_t, ByteRange,
                                          BodySink& sink) override {
    TRY(sink.write(bytes_of(body)));
    return info;
  }
  ListPage page;
  std::string body;
  GetInfo info;
};

ObjectInfo object(const std::string& key) {
  ObjectInfo info;
  info.key = key;
  return info;
}

class CheckLayerTest : public ::testing::Test {
 protected:
  ErrorCode list(const ListRequest& request, std::vector<std::string> keys, std::vector<std::string> prefixes = {},
                 bool truncated = false, std::string continuation = {}) {
    canned_->page = {};
    for (const auto& key : keys) canned_->page.objects.push_back(object(key));
    canned_->page.prefixes = std::move(prefixes);
    canned_->page.truncated = truncated;
    canned_->page.continuation = std::move(continuation);
    return code_of(store_->list_page({}, request));
  }
  static constexpr ErrorCode kFine = ErrorCode::kInternal;  // what code_of() says of a success
  std::shared_ptr<Canned> canned_ = std::make_shared<Canned>(make_memory_store("t"));
  ObjectStorePtr store_ = with_check(canned_);
};

TEST_F(CheckLayerTest, BodiesMustHaveTheirLengthAndVersion) {
  canned_->info = {"\"v1\"", 100, 0};
  const auto get = [&](const std::string& body, StringSink& sink, const std::string& if_match = "\"v1\"",
                       std::uint64_t size = 100) {
    canned_->body = body;
    return code_of(store_->get_range({}, "k", if_match, size, {0, 5}, sink));
  };
  StringSink sink;
  EXPECT_EQ(get("12345", sink), kFine);
  EXPECT_EQ(get("1234", sink), ErrorCode::kCorrupt);
  EXPECT_EQ(get("", sink), ErrorCode::kCorrupt);
  StringSink untouched;
  EXPECT_EQ(get("123456", untouched), ErrorCode::kCorrupt);
  EXPECT_EQ(untouched.text, "") << "no byte too many";
  EXPECT_EQ(get("12345", sink, "\"v0\""), ErrorCode::kPreconditionFailed);
  EXPECT_EQ(get("12345", sink, ""), kFine);
  EXPECT_EQ(get("12345", sink, "\"v1\"", 99), ErrorCode::kCorrupt);
}

TEST_F(CheckLayerTest, PagesMustBeInOrderInsideTheirPrefixAndMoveOn) {
  EXPECT_EQ(list(listing("a", "/"), {"a", "ab"}, {"a/"}), kFine);
  EXPECT_EQ(list(listing("a"), {"ab", "aa"}), ErrorCode::kCorrupt);
  EXPECT_EQ(list(listing("a"), {"aa", "aa"}), ErrorCode::kCorrupt);
  EXPECT_EQ(list(listing("a"), {"b"}), ErrorCode::kCorrupt);
  EXPECT_EQ(list(listing("a", "/"), {"a/b"}), ErrorCode::kCorrupt) << "belongs in the group a/";
  EXPECT_EQ(list(listing("a", "/"), {}, {"ab/", "a/"}), ErrorCode::kCorrupt);
  EXPECT_EQ(list(listing("a/", "/"), {}, {"a/"}), ErrorCode::kCorrupt);
  EXPECT_EQ(list(listing("a", "/"), {}, {"ab"}), ErrorCode::kCorrupt);
  EXPECT_EQ(list(listing("a"), {}, {"a/"}), ErrorCode::kCorrupt) << "groups without a delimiter";
  EXPECT_EQ(list(listing("a", "", "ab"), {"ab"}), ErrorCode::kCorrupt);
  EXPECT_EQ(list(listing("a", "", "ab"), {"abc"}), kFine);
  EXPECT_EQ(list(listing("a"), {"a"}, {}, true, ""), ErrorCode::kCorrupt);
  EXPECT_EQ(list(listing("a", "", "", 1000, "t1"), {"a"}, {}, true, "t1"), ErrorCode::kCorrupt);
  EXPECT_EQ(list(listing("a", "", "", 1000, "t1"), {"a"}, {}, true, "t2"), kFine);
  EXPECT_EQ(list(listing(""), {"\x7f", "\x80", "\xff"}), kFine) << "bytes compare unsigned";
}

TEST(FaultLayer, DoesWhatItIsToldAndOnlyThat) {
  auto memory = make_memory_store("t");
  const std::string body(100'000, 'x');
  const auto etag = put_ok(*memory, "k", body);
  const auto faulty = [&](const FaultOptions& options) { return with_fault(memory, options, Rng(5)); };
  EXPECT_EQ(get_all(*faulty({}), "k", etag), body);
  FaultOptions options;
  options.throttle = 1;
  EXPECT_EQ(get_all(*faulty(options), "k"), "!throttled");
  options = {};
  options.unavailable = 1;
  EXPECT_EQ(code_of(faulty(options)->list_page({}, {})), ErrorCode::kUnavailable);
  options = {};
  options.short_body = 1;
  const auto shorter = get_all(*faulty(options), "k", etag);
  EXPECT_LT(shorter.size(), body.size());
  EXPECT_EQ(shorter, body.substr(0, shorter.size()));
  options = {};
  options.flip_byte = 1;
  const auto flipped = get_all(*faulty(options), "k", etag);
  ASSERT_EQ(flipped.size(), body.size());
  EXPECT_EQ(std::count(flipped.begin(), flipped.end(), 'x'), 99'999);
  options = {};
  options.wrong_etag = 1;
  EXPECT_NE(faulty(options)->head({}, "k")->etag, etag);
  StringSink sink;
  EXPECT_EQ(code_of(with_check(faulty(options))->get_range({}, "k", etag, body.size(), {0, 5}, sink)),
            ErrorCode::kPreconditionFailed);
  options = {};
  options.error_after_put = 1;
  EXPECT_EQ(code_of(faulty(options)->put({}, "p", bytes_of("1"), {})), ErrorCode::kUnavailable);
  EXPECT_EQ(get_all(*memory, "p"), "1") << "it took effect";
}

TEST(MetricsLayer, CountsRequestsBytesAndTime) {
  metrics::Registry registry;
  auto store = with_metrics(make_memory_store("t"), registry);
  put_ok(*store, "k", "12345");
  EXPECT_EQ(get_all(*store, "k"), "12345");
  EXPECT_EQ(get_all(*store, "none"), "!not_found");
  StringSink full;
  full.fail_at = 1;
  EXPECT_FALSE(store->get_range({}, "k", "", 5, {0, 5}, full));
  const auto values = registry.snapshot();
  EXPECT_EQ(values.at(R"(thermocline_store_requests_total{result="ok",verb="put"})"), 1);
  EXPECT_EQ(values.at(R"(thermocline_store_requests_total{result="ok",verb="get"})"), 1);
  EXPECT_EQ(values.at(R"(thermocline_store_requests_total{result="no_space",verb="get"})"), 1);
  EXPECT_EQ(values.at(R"(thermocline_store_requests_total{result="not_found",verb="head"})"), 1);
  EXPECT_EQ(values.at(R"(thermocline_store_bytes_total{direction="sent"})"), 5);
  EXPECT_EQ(values.at(R"(thermocline_store_bytes_total{direction="received"})"), 5);
  EXPECT_NE(registry.text().find("thermocline_store_seconds_count{verb=\"get\"} 2\n"), std::string::npos);
}

TEST(TraceLayer, WritesOneLinePerRequest) {
  const std::string path = "/tmp/thermo-trace-" + std::to_string(::getpid());
  auto store = with_trace(make_memory_store("t"));
  log::Options options;
  options.target = path;
  ASSERT_TRUE(log::configure(options));
  put_ok(*store, "silent", "1");
  log::set_channel(log::Channel::kS3, true);
  RequestContext ctx;
  ctx.request_id = 42;
  ASSERT_TRUE(store->put(ctx, "a\nb", bytes_of("12345"), {}));
  StringSink sink;
  ASSERT_TRUE(store->get_range(ctx, "a\nb", "", 5, {1, 3}, sink));
  EXPECT_FALSE(store->head(ctx, "none"));
  log::set_channel(log::Channel::kS3, false);
  options.target = "stderr";
  ASSERT_TRUE(log::configure(options));
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  std::remove(path.c_str());
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_NE(lines[0].find("id=42 op=put store=memory:///t path='a\\x0ab' range=0+0 bytes=5"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find("path='a\\x0ab' range=1+3 bytes=3"), std::string::npos) << lines[1];
  EXPECT_NE(lines[2].find("id=42 op=head"), std::string::npos) << lines[2];
  EXPECT_NE(lines[2].find("result=not_found"), std::string::npos) << lines[2];
}

TEST(Layers, EveryVerbReachesTheStore) {
  metrics::Registry registry;
  const auto scripted = std::make_shared<ScriptedStore>(make_memory_store("t"));
  std::vector<Verb> seen;
  scripted->on_call = [&](const Call& call) { seen.push_back(call.verb); };
  const auto store =
      with_trace(with_metrics(with_check(with_retry(with_limit(with_fault(scripted, {}, Rng(1)), {}, Clock::system(), registry),
                                                    {}, Clock::system(), Rng(1))),
                              registry));
  EXPECT_EQ(store->id(), "memory:///t");
  put_ok(*store, "k", "1");
  EXPECT_EQ(get_all(*store, "k"), "1");
  EXPECT_EQ(list_all(*store, {}), Names{"k"});
  EXPECT_TRUE(store->remove({}, {"k"}));
  EXPECT_EQ(code_of(store->create_multipart({}, "k", {})), ErrorCode::kNotSupported);
  EXPECT_EQ(code_of(store->upload_part({}, "k", "u", 1, {})), ErrorCode::kNotSupported);
  EXPECT_EQ(code_of(store->copy_part({}, "k", "u", 1, "s", "e", {})), ErrorCode::kNotSupported);
  EXPECT_EQ(code_of(store->complete_multipart({}, "k", "u", {}, {})), ErrorCode::kNotSupported);
  EXPECT_EQ(code_of(store->abort_multipart({}, "k", "u")), ErrorCode::kNotSupported);
  EXPECT_EQ(code_of(store->copy({}, "s", "e", "k", {})), ErrorCode::kNotSupported);
  EXPECT_EQ(seen, (std::vector<Verb>{Verb::kPut, Verb::kHead, Verb::kGet, Verb::kList, Verb::kRemove, Verb::kCreateMultipart,
                                     Verb::kUploadPart, Verb::kCopyPart, Verb::kCompleteMultipart, Verb::kAbortMultipart,
                                     Verb::kCopy}));
}

// Thousands of GETs through all layers over a store that throttles, breaks and cuts: right bytes, or a clean error; never "not
// found".
TEST(Layers, SeededFaultsGiveRightBytesOrACleanError) {
  int right = 0;
  int errors = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    metrics::Registry registry;
    auto memory = make_memory_store("t");
    std::string body;
    while (body.size() < 700'000) body += static_cast<char>(rng.next());
    const auto etag = put_ok(*memory, "k", body);
    FaultOptions faults;
    faults.throttle = rng.unit() * 0.5;
    faults.unavailable = rng.unit() * 0.3;
    faults.short_body = rng.unit() * 0.6;
    RetryOptions retry;
    retry.base_delay = std::chrono::microseconds(1);
    retry.budget_burst = static_cast<double>(10 + rng.below(1000));
    retry.max_attempts = static_cast<int>(2 + rng.below(6));
    const auto store =
        with_check(with_retry(with_limit(with_fault(memory, faults, Rng(seed)), {4, 1, 8}, Clock::system(), registry), retry,
                              Clock::system(), Rng(seed)));
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t offset = rng.below(body.size());
      const std::uint64_t length = rng.below(body.size() - offset) + 1;
      StringSink sink;
      const auto got = store->get_range({}, "k", etag, body.size(), {offset, length}, sink);
      if (got) {
        ++right;
        ASSERT_TRUE(sink.text == body.substr(offset, length)) << "seed " << seed;
        ASSERT_EQ(got->etag, etag);
      } else {
        ++errors;
        const auto code = got.error().code();
        ASSERT_TRUE(code == ErrorCode::kThrottled || code == ErrorCode::kUnavailable || code == ErrorCode::kCorrupt)
            << got.error().describe();
        ASSERT_TRUE(sink.text == body.substr(offset, sink.text.size())) << "a prefix of the right bytes, seed " << seed;
      }
      const auto missing = store->head({}, "k");
      if (!missing) {
        ASSERT_NE(missing.error().code(), ErrorCode::kNotFound) << "seed " << seed;
      }
    }
    for (const auto& [name, value] : registry.snapshot()) {
      if (name.starts_with("thermocline_store_in_flight") || name.starts_with("thermocline_store_waiting")) {
        ASSERT_EQ(value, 0) << name;
      }
    }
  }
  EXPECT_GT(right, 2000);
  EXPECT_GT(errors, 20);
}

// The same with a writer that replaces the object: one version per success.
TEST(Layers, AWriterBesideReadersNeverMixesVersions) {
  metrics::Registry registry;
  auto memory = make_memory_store("t");
  FaultOptions faults;
  faults.throttle = 0.05;
  faults.short_body = 0.3;
  RetryOptions retry;
  retry.base_delay = std::chrono::microseconds(1);
  retry.budget_burst = 1e6;
  const auto store = with_check(
      with_retry(with_limit(with_fault(memory, faults, Rng(9)), {}, Clock::system(), registry), retry, Clock::system(), Rng(9)));
  put_ok(*memory, "k", std::string(600'000, 'a'));
  std::jthread writer([&](const std::stop_token& stop) {
    for (int i = 1; !stop.stop_requested(); ++i) {
      put_ok(*memory, "k", std::string(600'000, static_cast<char>('a' + i % 26)));
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  });
  int whole = 0;
  int stale = 0;
  for (int i = 0; i < 400; ++i) {
    const auto info = memory->head({}, "k");
    StringSink sink;
    const auto got = store->get_range({}, "k", info->etag, 600'000, {0, 600'000}, sink);
    if (got) {
      ++whole;
      ASSERT_EQ(sink.text.size(), 600'000U);
    } else if (got.error().code() == ErrorCode::kPreconditionFailed) {
      ++stale;
    }
    ASSERT_EQ(sink.text.find_first_not_of(sink.text.empty() ? 'a' : sink.text[0]), std::string::npos);
  }
  EXPECT_GT(whole, 0);
  EXPECT_GT(stale, 0);
}

}  // namespace
}  // namespace thermo::store
