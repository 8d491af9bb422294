#include <atomic>
#include <thread>

#include "store/layers/layers.h"
#include "store/memory/memory_store.h"
#include "unit/store/layers/scripted_store.h"
#include "unit/store/store_testing.h"

namespace thermo::store {
namespace {

using namespace testing;  // NOLINT: test helpers
using std::chrono::milliseconds;
using std::chrono::seconds;

Error error(ErrorCode code) { return Error(code, "scripted"); }

class RetryLayerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.base_delay = std::chrono::microseconds(1);
    build(Clock::system());
  }
  void build(const Clock& clock) {
    memory_ = make_memory_store("t", clock);
    etag_ = put_ok(*memory_, "k", body_);
    scripted_ = std::make_shared<ScriptedStore>(memory_);
    store_ = with_retry(scripted_, options_, clock, Rng(7));
  }
  Result<GetInfo> get(StringSink& sink, const std::string& if_match, const RequestContext& ctx = {}) {
    return store_->get_range(ctx, "k", if_match, body_.size(), {100, 800'000}, sink);
  }

  const std::string body_ = [] {
    Rng rng(3);
    std::string text;
    while (text.size() < 1'000'000) text += static_cast<char>(rng.next());
    return text;
  }();
  RetryOptions options_;
  ObjectStorePtr memory_;
  std::shared_ptr<ScriptedStore> scripted_;
  ObjectStorePtr store_;
  std::string etag_;
};

TEST_F(RetryLayerTest, TransientFailuresAreInvisible) {
  scripted_->script = {{error(ErrorCode::kThrottled)}, {error(ErrorCode::kUnavailable)}, {error(ErrorCode::kTimeout)}};
  EXPECT_TRUE(store_->head({}, "k"));
  EXPECT_EQ(scripted_->deadlines.size(), 4U);
}

TEST_F(RetryLayerTest, ThrottledForEverIsThrottledNeverNotFound) {
  for (int i = 0; i < 50; ++i) scripted_->script.push_back({error(ErrorCode::kThrottled).with_http(503)});
  const auto head = store_->head({}, "k");
  ASSERT_FALSE(head);
  EXPECT_EQ(head.error().code(), ErrorCode::kThrottled);
  EXPECT_EQ(head.error().http_status(), 503);
  EXPECT_NE(head.error().message().find("6 attempts"), std::string::npos) << head.error().message();
  EXPECT_EQ(scripted_->deadlines.size(), 6U) << "without a deadline attempts end it";
}

TEST_F(RetryLayerTest, FinalErrorsComeAtOnce) {
  for (const auto code :
       {ErrorCode::kNotFound, ErrorCode::kAccessDenied, ErrorCode::kPreconditionFailed, ErrorCode::kCancelled}) {
    build(Clock::system());
    scripted_->script = {{error(code)}};
    EXPECT_EQ(code_of(store_->head({}, "k")), code);
    EXPECT_EQ(scripted_->deadlines.size(), 1U);
  }
}

TEST_F(RetryLayerTest, CutBodyGoesOnWhereItStopped) {
  scripted_->script = {{error(ErrorCode::kUnavailable), 300'000},
                       {error(ErrorCode::kThrottled)},
                       {std::nullopt, 1000},
                       {error(ErrorCode::kTimeout), 0}};
  StringSink sink;
  const auto got = get(sink, etag_);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->etag, etag_);
  EXPECT_TRUE(sink.text == body_.substr(100, 800'000));
  EXPECT_EQ(
      scripted_->ranges,
      (std::vector<ByteRange>{{100, 800'000}, {300'100, 500'000}, {300'100, 500'000}, {301'100, 499'000}, {301'100, 499'000}}));
  for (const auto& version : scripted_->versions) EXPECT_EQ(version, etag_);
}

TEST_F(RetryLayerTest, ReplacedWhileItIsReadIsPreconditionFailed) {
  scripted_->script = {{error(ErrorCode::kUnavailable), 300'000}};
  scripted_->on_call = [&](const Call&) {
    if (scripted_->ranges.size() == 1) put_ok(*memory_, "k", std::string(1'000'000, 'n'));
  };
  StringSink sink;
  EXPECT_EQ(code_of(get(sink, etag_)), ErrorCode::kPreconditionFailed);
  EXPECT_TRUE(sink.text == body_.substr(100, 300'000)) << "nothing of the new version";
}

TEST_F(RetryLayerTest, WithoutAVersionACutBodyIsNotPatched) {
  scripted_->script = {{error(ErrorCode::kUnavailable), 300'000}};
  StringSink sink;
  EXPECT_EQ(code_of(get(sink, "")), ErrorCode::kUnavailable);
  EXPECT_EQ(scripted_->ranges.size(), 1U);
  // A false success names its version: the rest is asked for under it.
  build(Clock::system());
  scripted_->script = {{error(ErrorCode::kUnavailable)}, {std::nullopt, 5000}};
  StringSink other;
  ASSERT_TRUE(get(other, ""));
  EXPECT_TRUE(other.text == body_.substr(100, 800'000));
  EXPECT_EQ(scripted_->versions, (std::vector<std::string>{"", "", etag_}));
}

TEST_F(RetryLayerTest, AChecksumThatFailedIsNotRepairedByMoreBytes) {
  scripted_->script = {{error(ErrorCode::kCorrupt), 800'000}};
  StringSink sink;
  EXPECT_EQ(code_of(get(sink, etag_)), ErrorCode::kCorrupt);
  EXPECT_EQ(scripted_->ranges.size(), 1U);
}

TEST_F(RetryLayerTest, ABreakAfterTheLastByteIsASuccess) {
  scripted_->script = {{error(ErrorCode::kUnavailable), 800'000}};
  StringSink sink;
  const auto got = get(sink, etag_);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->etag, etag_);
  EXPECT_EQ(scripted_->ranges.size(), 1U);
}

TEST_F(RetryLayerTest, ManyCutsWithProgressAreOutlivedATrickleIsNot) {
  for (int i = 0; i < 10; ++i) scripted_->script.push_back({error(ErrorCode::kUnavailable), 70'000});
  StringSink sink;
  EXPECT_TRUE(get(sink, etag_));
  EXPECT_TRUE(sink.text == body_.substr(100, 800'000));
  build(Clock::system());
  for (int i = 0; i < 100; ++i) scripted_->script.push_back({error(ErrorCode::kUnavailable), 10});
  StringSink trickle;
  EXPECT_EQ(code_of(get(trickle, etag_)), ErrorCode::kUnavailable);
  EXPECT_EQ(scripted_->ranges.size(), 6U);
}

TEST_F(RetryLayerTest, TheReceiversErrorIsFinal) {
  StringSink sink;
  sink.fail_at = 1;
  EXPECT_EQ(code_of(get(sink, etag_)), ErrorCode::kNoSpace);
  EXPECT_EQ(scripted_->ranges.size(), 1U);
}

TEST_F(RetryLayerTest, EmptyRangesAreRetriedToo) {
  put_ok(*memory_, "empty", "");
  scripted_->script = {{error(ErrorCode::kUnavailable)}};
  EXPECT_EQ(get_all(*store_, "empty"), "");
}

TEST_F(RetryLayerTest, PlainPutIsRepeated) {
  scripted_->script = {{error(ErrorCode::kUnavailable), 0, true}, {error(ErrorCode::kThrottled)}};
  put_ok(*store_, "p", "1");
  EXPECT_EQ(get_all(*memory_, "p"), "1");
}

TEST_F(RetryLayerTest, ConditionalPutWithALostAnswerIsNotRepeated) {
  PutOptions create;
  create.if_none_match = true;
  for (const auto code : {ErrorCode::kUnavailable, ErrorCode::kTimeout}) {
    build(Clock::system());
    ASSERT_TRUE(memory_->remove({}, {"p"}));
    scripted_->script = {{error(code), 0, true}};
    const auto put = store_->put({}, "p", bytes_of("1"), create);
    EXPECT_EQ(code_of(put), ErrorCode::kUnavailable) << "blindly repeated it would say 412 to its own success";
    EXPECT_EQ(put.error().retry_class(), RetryClass::kNever);
    EXPECT_EQ(scripted_->deadlines.size(), 1U);
  }
  // "Not done" is an answer: trying again is safe.
  build(Clock::system());
  ASSERT_TRUE(memory_->remove({}, {"p"}));
  scripted_->script = {{error(ErrorCode::kThrottled)}, {error(ErrorCode::kConflict)}};
  EXPECT_TRUE(store_->put({}, "p", bytes_of("1"), create));
  EXPECT_EQ(scripted_->deadlines.size(), 3U);
}

TEST_F(RetryLayerTest, OnlyFailedKeysAreRemovedAgain) {
  class PartlyFailing final : public ForwardingStore {
   public:
    using ForwardingStore::ForwardingStore;
    [[nodiscard]] Result<std::vector<RemoveFailure>> remove(const RequestContext&,
                                                            const std::vector<std::string>& keys) override {
      asked.push_back(keys);
      std::vector<RemoveFailure> failures;
      for (const auto& key : keys) {
        if (key == "busy" && asked.size() < 3) failures.push_back({key, Error(ErrorCode::kThrottled)});
        if (key == "locked") failures.push_back({key, Error(ErrorCode::kAccessDenied)});
      }
      return failures;
    }
    std::vector<std::vector<std::string>> asked;
  };
  const auto inner = std::make_shared<PartlyFailing>(memory_);
  const auto failures = with_retry(inner, options_, Clock::system(), Rng(1))->remove({}, {"a", "busy", "locked"});
  ASSERT_TRUE(failures);
  ASSERT_EQ(failures->size(), 1U);
  EXPECT_EQ(failures->front().key, "locked");
  EXPECT_EQ(inner->asked, (std::vector<std::vector<std::string>>{{"a", "busy", "locked"}, {"busy"}, {"busy"}}));
}

TEST_F(RetryLayerTest, AttemptsHaveTheirOwnShorterDeadline) {
  FakeClock clock;
  options_.attempt_timeout = seconds(3);
  options_.base_delay = Nanos(0);
  build(clock);
  auto ctx = RequestContext::with_timeout(clock, seconds(5));
  scripted_->script = {{error(ErrorCode::kTimeout)}};
  scripted_->on_call = [&](const Call&) {
    if (scripted_->deadlines.empty()) clock.advance(seconds(3));
  };
  EXPECT_TRUE(store_->head(ctx, "k"));
  ASSERT_EQ(scripted_->deadlines.size(), 2U);
  EXPECT_EQ(scripted_->deadlines[0], MonoTime(seconds(3)));
  EXPECT_EQ(scripted_->deadlines[1], MonoTime(seconds(5))) << "never past the request's own";
}

TEST_F(RetryLayerTest, PausesByTheClockAndHonoursRetryAfter) {
  FakeClock clock;
  build(clock);
  scripted_->script = {{error(ErrorCode::kThrottled).with_retry_after_ms(10'000)}};
  std::atomic<bool> done{false};
  MonoTime failed_at{};
  scripted_->on_call = [&](const Call&) {
    if (scripted_->deadlines.empty()) failed_at = clock.now();
  };
  std::thread reader([&] {
    EXPECT_TRUE(store_->head({}, "k"));
    done = true;
  });
  while (!done) {
    clock.advance(milliseconds(100));
    std::this_thread::sleep_for(milliseconds(1));
  }
  reader.join();
  EXPECT_GE(clock.now() - failed_at, seconds(10));
  EXPECT_EQ(scripted_->deadlines.size(), 2U);
}

TEST_F(RetryLayerTest, StopEndsAPause) {
  FakeClock clock;  // stands still: only the stop can end it
  build(clock);
  scripted_->script = {{error(ErrorCode::kThrottled).with_retry_after_ms(10'000)}};
  std::stop_source stop;
  RequestContext ctx;
  ctx.stop = stop.get_token();
  std::thread stopper([&] {
    std::this_thread::sleep_for(milliseconds(50));
    stop.request_stop();
  });
  const auto begin = Clock::system().now();
  EXPECT_EQ(code_of(store_->head(ctx, "k")), ErrorCode::kCancelled);
  EXPECT_LT(Clock::system().now() - begin, seconds(2));
  stopper.join();
}

TEST_F(RetryLayerTest, ARequestThatMayNotWaitIsTriedOnce) {
  scripted_->script = {{error(ErrorCode::kThrottled)}, {error(ErrorCode::kThrottled)}};
  EXPECT_EQ(code_of(store_->head(RequestContext{}.waiting(false), "k")), ErrorCode::kThrottled);
  EXPECT_EQ(scripted_->deadlines.size(), 1U);
}

TEST_F(RetryLayerTest, TheBudgetStopsAStorm) {
  options_.budget_burst = 5;
  options_.budget_ratio = 0;
  build(Clock::system());
  for (int i = 0; i < 1000; ++i) scripted_->script.push_back({error(ErrorCode::kUnavailable)});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(code_of(store_->head({}, "k")), ErrorCode::kUnavailable);
  EXPECT_EQ(scripted_->deadlines.size(), 25U) << "20 requests and 5 retries, not 120";
  const auto last = store_->head({}, "k");
  EXPECT_NE(last.error().message().find("budget"), std::string::npos);
}

}  // namespace
}  // namespace thermo::store
