// The client against a raw-socket peer that cuts, stalls, resets and answers oddly.

#include "net/http_client.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <thread>

#include "unit/net/tiny_server.h"

namespace thermo::net {
namespace {

using std::chrono::milliseconds;
using testing::TinyConnection;
using testing::TinyRequest;
using testing::TinyServer;

class Collector final : public BodySink, public BodyRouter {
 public:
  BodySink* route(const HttpResponse& head) override { return head.status / 100 == 2 ? this : nullptr; }
  Result<void> write(std::span<const std::byte> bytes) override {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.size() >= fail_at) return thermo::fail(ErrorCode::kNoSpace, "sink is full");
    return {};
  }
  std::string text;
  std::size_t fail_at = SIZE_MAX;
};

HttpClientOptions quick() {
  HttpClientOptions options;
  options.connect_timeout = milliseconds(500);
  options.stall_timeout = milliseconds(200);
  return options;
}

HttpRequest get(const std::string& url) {
  HttpRequest request;
  request.url = url;
  return request;
}

RequestContext within(Nanos timeout) { return RequestContext::with_timeout(Clock::system(), timeout); }
void wait_until_stopped(const TinyServer* server) {
  while (!server->stopping()) std::this_thread::sleep_for(milliseconds(5));
}

TEST(HttpClient, SendsTheTargetAsItIsAndNothingOfItsOwn) {
  TinyServer server([](TinyConnection& c, const TinyRequest&) { c.answer(200, "X-One:  a  b \r\n", "body"); });
  auto client = make_http_client(quick());
  auto request = get(server.url("/b/a//./../x%2Fy?list-type=2&prefix=dt%3D1%2F"));
  request.headers = {{"X-Mine", "1"}, {"X-Empty", ""}};
  auto answer = client->perform({}, request, nullptr);
  ASSERT_TRUE(answer) << answer.error().describe();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "body");
  EXPECT_EQ(*answer->header("x-one"), "a b");
  EXPECT_EQ(answer->header("x-two"), nullptr);
  EXPECT_EQ(answer->remote, "127.0.0.1:" + std::to_string(server.port()));
  const auto seen = server.requests().at(0);
  EXPECT_EQ(seen.target, "/b/a//./../x%2Fy?list-type=2&prefix=dt%3D1%2F");
  EXPECT_EQ(seen.header("host"), "127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(seen.header("x-mine"), "1");
  EXPECT_TRUE(seen.has("x-empty"));
  for (const char* unwanted : {"accept-encoding", "expect", "accept", "content-type", "content-length"})
    EXPECT_FALSE(seen.has(unwanted)) << unwanted;
}

TEST(HttpClient, BodyGoesToTheSinkOrIsCollectedAsTheRouterSays) {
  TinyServer server([](TinyConnection& c, const TinyRequest& r) { c.answer(r.target == "/good" ? 206 : 503, "", "payload"); });
  auto client = make_http_client(quick());
  Collector sink;
  auto good = client->perform({}, get(server.url("/good")), &sink);
  ASSERT_TRUE(good);
  EXPECT_EQ(sink.text, "payload");
  EXPECT_EQ(good->body, "");
  Collector other;
  auto bad = client->perform({}, get(server.url("/bad")), &other);
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->status, 503);
  EXPECT_EQ(bad->body, "payload");
  EXPECT_EQ(other.text, "");
  EXPECT_EQ(server.connections(), 1);  // kept alive
}

TEST(HttpClient, UploadsWithLengthAndWithoutExpect) {
  TinyServer server([](TinyConnection& c, const TinyRequest&) { c.answer(200, "", ""); });
  auto client = make_http_client(quick());
  const std::string body(3U << 20U, 'x');
  HttpRequest request = get(server.url("/k"));
  for (const char* method : {"PUT", "POST"}) {
    request.method = method;
    request.body = std::as_bytes(std::span(body));
    ASSERT_TRUE(client->perform({}, request, nullptr));
    request.body = {};
    ASSERT_TRUE(client->perform({}, request, nullptr));
  }
  const auto seen = server.requests();
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen[0].method, "PUT");
  EXPECT_EQ(seen[0].body, body);
  EXPECT_FALSE(seen[0].has("expect"));
  EXPECT_FALSE(seen[0].has("content-type"));
  EXPECT_EQ(seen[1].header("content-length"), "0");
  EXPECT_EQ(seen[2].method, "POST");
  EXPECT_EQ(seen[3].header("content-length"), "0");
}

TEST(HttpClient, HeadAndDelete) {
  TinyServer server([](TinyConnection& c, const TinyRequest& r) {
    if (r.method == "HEAD") {
      c.send("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n");
    } else {
      c.send("HTTP/1.1 204 No Content\r\n\r\n");
    }
  });
  auto client = make_http_client(quick());
  auto request = get(server.url("/k"));
  request.method = "HEAD";
  auto head = client->perform({}, request, nullptr);
  ASSERT_TRUE(head);
  EXPECT_EQ(*head->header("content-length"), "12345");
  request.method = "DELETE";
  auto removed = client->perform({}, request, nullptr);
  ASSERT_TRUE(removed);
  EXPECT_EQ(removed->status, 204);
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpClient, ChunkedBodiesAndInterimAnswers) {
  TinyServer server([](TinyConnection& c, const TinyRequest&) {
    c.send("HTTP/1.1 100 Continue\r\nX-Interim: 1\r\n\r\n");
    c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Final: 1\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n");
  });
  auto client = make_http_client(quick());
  Collector sink;
  auto answer = client->perform({}, get(server.url()), &sink);
  ASSERT_TRUE(answer);
  EXPECT_EQ(sink.text, "abcde");
  EXPECT_EQ(answer->header("x-interim"), nullptr);
  EXPECT_NE(answer->header("x-final"), nullptr);
}

TEST(HttpClient, RedirectsAreAnswersNotFollowed) {
  TinyServer server([](TinyConnection& c, const TinyRequest&) { c.answer(307, "Location: http://127.0.0.1:1/\r\n", ""); });
  auto client = make_http_client(quick());
  auto answer = client->perform({}, get(server.url()), nullptr);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 307);
}

TEST(HttpClient, SinkErrorEndsTheTransferWithThatError) {
  TinyServer server([](TinyConnection& c, const TinyRequest&) { c.answer(200, "", std::string(4U << 20U, 'x')); });
  auto client = make_http_client(quick());
  Collector sink;
  sink.fail_at = 100'000;
  auto answer = client->perform({}, get(server.url()), &sink);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::kNoSpace);
  EXPECT_EQ(answer.error().message(), "sink is full");
}

TEST(HttpClient, CutBodyIsUnavailableAndSaysWhere) {
  TinyServer server([](TinyConnection& c, const TinyRequest& r) {
    c.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789");
    if (r.target == "/reset") {
      std::this_thread::sleep_for(milliseconds(50));
      c.reset();
    }
    c.close();
  });
  auto client = make_http_client(quick());
  for (const char* path : {"/cut", "/reset"}) {
    Collector sink;
    auto answer = client->perform({}, get(server.url(path)), &sink);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code(), ErrorCode::kUnavailable);
    EXPECT_EQ(answer.error().retry_class(), RetryClass::kRetry);
    EXPECT_NE(answer.error().message().find("after 10 of 100 bytes"), std::string::npos) << answer.error().message();
    EXPECT_EQ(sink.text, "0123456789");
  }
}

TEST(HttpClient, StalledPeerIsATimeout) {
  TinyServer* self = nullptr;
  TinyServer server([&self](TinyConnection& c, const TinyRequest& r) {
    if (r.target == "/mid") c.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789");
    wait_until_stopped(self);
  });
  self = &server;
  auto client = make_http_client(quick());
  for (const char* path : {"/mid", "/never"}) {
    const auto start = Clock::system().now();
    auto answer = client->perform({}, get(server.url(path)), nullptr);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code(), ErrorCode::kTimeout) << answer.error().describe();
    EXPECT_LT(Clock::system().now() - start, std::chrono::seconds(3));
  }
}

TEST(HttpClient, SlowButMovingPeerIsNoStall) {
  TinyServer server([](TinyConnection& c, const TinyRequest&) {
    c.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
    for (int i = 0; i < 10; ++i) {
      std::this_thread::sleep_for(milliseconds(60));
      c.send("x");
    }
  });
  auto client = make_http_client(quick());
  auto answer = client->perform({}, get(server.url()), nullptr);
  ASSERT_TRUE(answer) << answer.error().describe();
  EXPECT_EQ(answer->body.size(), 10U);
}

TEST(HttpClient, DeadlineAndStopEndTheCall) {
  TinyServer* self = nullptr;
  TinyServer server([&self](TinyConnection&, const TinyRequest&) { wait_until_stopped(self); });
  self = &server;
  auto options = quick();
  options.stall_timeout = std::chrono::seconds(30);
  auto client = make_http_client(options);
  auto late = client->perform(within(milliseconds(50)), get(server.url()), nullptr);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::kTimeout);

  std::stop_source source;
  RequestContext ctx;
  ctx.stop = source.get_token();
  std::thread stopper([&source] {
    std::this_thread::sleep_for(milliseconds(50));
    source.request_stop();
  });
  auto stopped = client->perform(ctx, get(server.url()), nullptr);
  stopper.join();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), ErrorCode::kCancelled);

  auto again = client->perform(ctx, get(server.url()), nullptr);
  EXPECT_EQ(again.error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(server.requests().size(), 2U);  // nothing sent for a request that is over
  RequestContext impatient;
  impatient.may_wait = false;
  EXPECT_EQ(client->perform(impatient, get(server.url()), nullptr).error().code(), ErrorCode::kWouldWaitStore);
}

TEST(HttpClient, ResetOfAReusedConnectionIsRepeatedSilently) {
  TinyServer server([](TinyConnection& c, const TinyRequest& r) {
    if (r.number == 2) return c.reset();
    c.answer(200, "", "answer " + std::to_string(r.connection));
  });
  auto client = make_http_client(quick());
  ASSERT_TRUE(client->perform({}, get(server.url()), nullptr));
  auto second = client->perform({}, get(server.url()), nullptr);
  ASSERT_TRUE(second) << second.error().describe();
  EXPECT_EQ(second->body, "answer 2");
  EXPECT_EQ(server.connections(), 2);

  const std::string body = "resent";
  auto put = get(server.url());
  put.method = "PUT";
  put.body = std::as_bytes(std::span(body));
  ASSERT_TRUE(client->perform({}, put, nullptr));  // connection 2 resets it
  EXPECT_EQ(server.requests().back().body, body);
}

TEST(HttpClient, ResetOfAFreshConnectionIsReported) {
  TinyServer server([](TinyConnection& c, const TinyRequest&) { c.reset(); });
  auto client = make_http_client(quick());
  auto answer = client->perform({}, get(server.url()), nullptr);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST(HttpClient, IdleConnectionsPastTheirAgeAreNotUsedAgain) {
  TinyServer server([](TinyConnection& c, const TinyRequest&) { c.answer(200, "", ""); });
  auto options = quick();
  options.max_idle = std::chrono::seconds(1);
  auto client = make_http_client(options);
  ASSERT_TRUE(client->perform({}, get(server.url()), nullptr));
  ASSERT_TRUE(client->perform({}, get(server.url()), nullptr));
  EXPECT_EQ(server.connections(), 1);
  std::this_thread::sleep_for(milliseconds(2200));
  ASSERT_TRUE(client->perform({}, get(server.url()), nullptr));
  EXPECT_EQ(server.connections(), 2);
}

TEST(HttpClient, ErrorsNameThePeerAndTheMend) {
  auto client = make_http_client(quick());
  auto refused = client->perform({}, get("http://127.0.0.1:1/x"), nullptr);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnavailable);
  EXPECT_NE(refused.error().message().find("127.0.0.1:1"), std::string::npos);
  EXPECT_NE(refused.error().message().find("--endpoint"), std::string::npos);
  auto nowhere = client->perform({}, get("http://no-such-host.invalid/x"), nullptr);
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code(), ErrorCode::kUnavailable);
  EXPECT_NE(nowhere.error().message().find("no-such-host.invalid:80"), std::string::npos) << nowhere.error().message();
  EXPECT_EQ(client->perform({}, get("ftp://127.0.0.1/x"), nullptr).error().code(), ErrorCode::kInvalidArgument);
  TinyServer plain([](TinyConnection& c, const TinyRequest&) { c.answer(200, "", ""); });
  auto split = get(plain.url());
  split.headers = {{"X-Key", "a\r\nEvil: 1"}};
  EXPECT_EQ(client->perform({}, split, nullptr).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(plain.requests().empty());
}

TEST(HttpClient, GarbageAndOversizedAnswersAreErrors) {
  TinyServer server([](TinyConnection& c, const TinyRequest& r) {
    if (r.target == "/garbage") {
      c.send("what is this\r\n\r\n");
    } else if (r.target == "/head") {
      c.send("HTTP/1.1 200 OK\r\n");
      for (int i = 0; i < 10 && c.send("X-" + std::to_string(i) + ": " + std::string(60'000, 'h') + "\r\n"); ++i) {
      }
      c.send("\r\n");
    } else {
      c.answer(500, "", std::string(17U << 20U, 'x'));
    }
    c.close();
  });
  auto client = make_http_client(quick());
  for (const char* path : {"/garbage", "/head", "/body"}) {
    auto answer = client->perform({}, get(server.url(path)), nullptr);
    ASSERT_FALSE(answer) << path;
    EXPECT_EQ(answer.error().code(), ErrorCode::kUnavailable) << path << answer.error().describe();
  }
}

TEST(HttpClient, ConnectionsAreBoundedAndUrgentOnesGoFirst) {
  std::mutex mutex;
  std::condition_variable released;
  bool open = false;
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  TinyServer server([&](TinyConnection& c, const TinyRequest& r) {
    most = std::max<int>(most, ++running);
    if (r.target.starts_with("/gate")) {
      std::unique_lock lock(mutex);
      released.wait(lock, [&] { return open; });
    }
    --running;
    c.answer(200, "", "");
  });
  auto options = quick();
  options.max_connections = 2;
  options.stall_timeout = std::chrono::seconds(30);
  auto client = make_http_client(options);
  std::vector<std::thread> threads;
  const auto call = [&](const std::string& path, Priority priority) {
    threads.emplace_back(
        [&, path, priority] { EXPECT_TRUE(client->perform(RequestContext().at(priority), get(server.url(path)), nullptr)); });
  };
  call("/gate1", Priority::kForeground);
  call("/gate2", Priority::kForeground);
  while (server.requests().size() < 2) std::this_thread::sleep_for(milliseconds(2));
  for (int i = 0; i < 4; ++i) call("/late", Priority::kPrefetch);
  std::this_thread::sleep_for(milliseconds(50));
  call("/urgent", Priority::kForeground);
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(server.requests().size(), 2U);
  {
    const std::lock_guard lock(mutex);
    open = true;
  }
  released.notify_all();
  for (auto& thread : threads) thread.join();
  const auto seen = server.requests();
  ASSERT_EQ(seen.size(), 7U);
  EXPECT_TRUE(seen[2].target == "/urgent" || seen[3].target == "/urgent");
  EXPECT_LE(most.load(), 2);
  EXPECT_EQ(server.connections(), 2);
}

TEST(HttpClient, ManyThreadsGetTheirOwnAnswers) {
  TinyServer server(
      [](TinyConnection& c, const TinyRequest& r) { c.answer(200, "", r.target + std::string(r.target.size() * 3000, '.')); });
  auto client = make_http_client(quick());
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string path = "/" + std::to_string(t) + "/" + std::to_string(i);
        Collector sink;
        // Every third is given up at a random-ish moment: neither the others nor the loop may suffer.
        const bool hasty = i % 3 == 0;
        auto answer =
            client->perform(hasty ? within(std::chrono::microseconds(i * 20)) : RequestContext(), get(server.url(path)), &sink);
        if (answer) {
          ASSERT_EQ(sink.text, path + std::string(path.size() * 3000, '.'));
        } else {
          ASSERT_TRUE(hasty) << answer.error().describe();
          ASSERT_EQ(answer.error().code(), ErrorCode::kTimeout);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace thermo::net
