// Faults, delays, limits, counters and the proxy, through the wire.

#include <gtest/gtest.h>

#include <thread>

#include "base/rng.h"
#include "sim_fixture.h"

namespace thermo::s3sim {
namespace {

using std::chrono::milliseconds;

double seconds_since(MonoTime begin) { return std::chrono::duration<double>(Clock::system().now() - begin).count(); }

std::string random_body(std::size_t size) {
  Rng rng(5);
  std::string body(size, '\0');
  for (char& c : body) c = static_cast<char>(rng.next());
  return body;
}

/// The same things are to hold of a server of its own and of a proxy before one.
class Wire : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      behind_ = std::make_unique<Sim>();
      Options options;
      options.mode = Options::Mode::kProxy;
      options.upstream = fmt::format("http://127.0.0.1:{}", behind_->server->port());
      sim_ = std::make_unique<Sim>(options);
    } else {
      sim_ = std::make_unique<Sim>();
    }
    EXPECT_EQ(sim_->put("/b").status, 200);
    EXPECT_EQ(sim_->put("/b/k", body_).status, 200);
  }

  const std::string body_ = random_body(700'000);
  std::unique_ptr<Sim> behind_, sim_;
};
INSTANTIATE_TEST_SUITE_P(OwnAndProxy, Wire, ::testing::Bool(), [](const auto& param) { return param.param ? "Proxy" : "Own"; });

TEST_P(Wire, NothingWrongWithoutFaults) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(sim_->get("/b/k").body, body_);
    EXPECT_EQ(sim_->get("/b/k", "Range: bytes=100-299999\r\n").body, body_.substr(100, 299'900));
    EXPECT_EQ(sim_->client->request("HEAD", "/b/k").header("content-length"), "700000");
    EXPECT_EQ(sim_->get("/b/none").status, 404);
    EXPECT_EQ(sim_->client->request("DELETE", "/b/none").status, 204);
    EXPECT_EQ(sim_->get("/b/k", "If-None-Match: *\r\n").status, 304);
  }
  EXPECT_TRUE(sim_->client->connected()) << "all on one connection";
  sim_->client->send("PUT /b/chunked HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(sim_->client->receive().status, 100);
  sim_->client->send("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_EQ(sim_->client->receive().status, 200);
  EXPECT_EQ(sim_->get("/b/chunked").body, "abcde");
}

TEST_P(Wire, ErrorAnswers) {
  struct Case {
    const char* spec;
    int status;
    const char* code;
  };
  for (const Case& c : {Case{"slowdown=1:1500ms", 503, "SlowDown"},
                        {"error500=1", 500, "InternalError"},
                        {"error403=1", 403, "AccessDenied"},
                        {"expired=1", 400, "ExpiredToken"},
                        {"redirect301=1:eu-west-1", 301, "PermanentRedirect"},
                        {"region400=1:eu-west-1", 400, "AuthorizationHeaderMalformed"},
                        {"redirect307=1:eu-west-1/127.0.0.1:9", 307, "TemporaryRedirect"},
                        {"conflict409=1@GET", 409, "ConditionalRequestConflict"},
                        {"error200=1@GET", 200, "InternalError"}}) {
    sim_->faults(c.spec);
    const auto got = sim_->get("/b/k");
    EXPECT_EQ(got.status, c.status) << c.spec;
    EXPECT_EQ(xml_value(got.body, "Code"), c.code);
    if (c.status == 503) {
      EXPECT_EQ(got.header("retry-after"), "2") << "whole seconds, rounded up";
    }
    if (c.status / 100 == 3) {
      EXPECT_EQ(got.header("x-amz-bucket-region"), "eu-west-1");
    }
    if (c.status == 307) {
      EXPECT_EQ(got.header("location"), "http://127.0.0.1:9/b/k");
    }
    if (c.status == 400 && got.body.find("<Region>") != std::string::npos) {
      EXPECT_EQ(xml_value(got.body, "Region"), "eu-west-1");
    }
    const auto head = sim_->client->request("HEAD", "/b/k");
    if (std::string_view(c.spec).find('@') == std::string_view::npos) {
      EXPECT_EQ(head.status, c.status) << "HEAD too, without a body";
    }
    EXPECT_EQ(sim_->client->rest(), "");
  }
  sim_->faults("");
  EXPECT_EQ(sim_->get("/b/k").status, 200);
}

TEST_P(Wire, BrokenBodies) {
  sim_->faults("drop=1*1");
  EXPECT_EQ(sim_->get("/b/k").status, 0);
  sim_->faults("cut=1*1");
  const auto cut = sim_->get("/b/k");
  EXPECT_EQ(cut.header("content-length"), "700000");
  EXPECT_LT(cut.body.size(), body_.size());
  EXPECT_FALSE(cut.complete || cut.reset);
  EXPECT_EQ(cut.body, body_.substr(0, cut.body.size()));
  sim_->faults("reset=1*1");
  const auto reset = sim_->get("/b/k");
  EXPECT_FALSE(reset.complete);
  EXPECT_TRUE(reset.reset);
  sim_->faults("flip=1*1");
  const auto flipped = sim_->get("/b/k");
  ASSERT_EQ(flipped.body.size(), body_.size());
  int wrong = 0;
  for (std::size_t i = 0; i < body_.size(); ++i) wrong += flipped.body[i] != body_[i];
  EXPECT_EQ(wrong, 1);
  EXPECT_EQ(sim_->get("/b/k").body, body_) << "once means once";
  sim_->faults("stall=1:300ms*1");
  const auto begin = Clock::system().now();
  EXPECT_EQ(sim_->get("/b/k").body, body_);
  EXPECT_GE(seconds_since(begin), 0.3);
  const auto faults = sim_->stats()["faults"];
  for (const auto* kind : {"drop", "cut", "reset", "flip", "stall"}) EXPECT_EQ(faults[kind], 1) << kind;
}

TEST_P(Wire, WrongHeaders) {
  const std::string etag = sim_->get("/b/k").header("etag");
  sim_->faults("etag=1*1");
  const std::string wrong = sim_->get("/b/k").header("etag");
  EXPECT_NE(wrong, etag);
  EXPECT_EQ(wrong.size(), etag.size());
  sim_->put("/b/c", "data", "x-amz-checksum-crc32: rfPzYw==\r\n");
  sim_->faults("checksum=1*1");
  EXPECT_EQ(sim_->get("/b/c").header("etag").size(), etag.size()) << "no checksum was asked: nothing to spoil, the shot is kept";
  EXPECT_EQ(sim_->get("/b/c", "x-amz-checksum-mode: ENABLED\r\n").header("x-amz-checksum-crc32"), "0fPzYw==");
}

TEST_P(Wire, WritesThatTookEffect) {
  sim_->faults("put_after=1*1");
  EXPECT_EQ(sim_->put("/b/after", "1").status, 500);
  EXPECT_EQ(sim_->get("/b/after").body, "1");
  sim_->faults("put_lost=1*1");
  EXPECT_EQ(sim_->put("/b/lost", "2").status, 0);
  EXPECT_EQ(sim_->get("/b/lost").body, "2");
  EXPECT_EQ(sim_->put("/none/x", "3").status, 404);
}

TEST_P(Wire, TruncatedListing) {
  sim_->put("/b/l", "1");
  sim_->faults("truncated_list=1*1");
  const auto lied = sim_->get("/b?list-type=2");
  EXPECT_EQ(xml_value(lied.body, "KeyCount"), "1");
  EXPECT_EQ(lied.body.find("<Key>l</Key>"), std::string::npos);
  EXPECT_NE(sim_->get("/b?list-type=2").body.find("<Key>l</Key>"), std::string::npos);
}

TEST_P(Wire, DelaysAndBandwidth) {
  sim_->options(R"({"first_byte_ms": 80})");
  auto begin = Clock::system().now();
  EXPECT_EQ(sim_->client->request("HEAD", "/b/k").status, 200);
  EXPECT_GE(seconds_since(begin), 0.08);
  EXPECT_LT(seconds_since(begin), 1.0);
  sim_->options(R"({"first_byte_ms": 0, "per_connection": "2MB/s"})");
  begin = Clock::system().now();
  EXPECT_EQ(sim_->get("/b/k").body, body_);
  EXPECT_GE(seconds_since(begin), 0.33);
  EXPECT_LT(seconds_since(begin), 1.5);
  begin = Clock::system().now();
  EXPECT_EQ(sim_->put("/b/k", body_).status, 200);
  EXPECT_GE(seconds_since(begin), 0.25) << "uploads are paced too";
  sim_->options(R"({"per_connection": 0, "total": "4MB/s"})");
  begin = Clock::system().now();
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] { EXPECT_EQ(test::RawClient(sim_->server->port()).request("GET", "/b/k").body, body_); });
  for (auto& thread : threads) thread.join();
  EXPECT_GE(seconds_since(begin), 0.45);
  EXPECT_LT(seconds_since(begin), 3.0);
  sim_->options(R"({"total": 0})");
  sim_->faults("slowfirst=1:200ms*1");
  begin = Clock::system().now();
  EXPECT_EQ(sim_->get("/b/k").status, 200);
  EXPECT_GE(seconds_since(begin), 0.2);
}

TEST_P(Wire, CountsWhatWasAsked) {
  test::RawClient(sim_->server->port()).request("POST", "/_sim/reset");
  sim_->get("/b/k", "Range: bytes=10-19\r\n");
  sim_->get("/b/k");
  sim_->get("/b/none");
  sim_->client->request("HEAD", "/b/k");
  sim_->get("/b?list-type=2");
  sim_->put("/b/new", "12345");
  const auto stats = sim_->stats();
  EXPECT_EQ(stats["requests"]["GET"], 3);
  EXPECT_EQ(stats["requests"]["HEAD"], 1);
  EXPECT_EQ(stats["requests"]["LIST"], 1);
  EXPECT_EQ(stats["list_pages"], 1);
  EXPECT_EQ(stats["requests"]["PUT"], 1);
  EXPECT_EQ(stats["total"], 6);
  EXPECT_EQ(stats["bytes_in"], 5);
  EXPECT_GE(stats["bytes_out"], 700'010);
  EXPECT_EQ(stats["in_flight_max"], 1);
  ASSERT_EQ(stats["ranges"].size(), 2U) << "what failed is no range";
  EXPECT_EQ(stats["ranges"][0], (nlohmann::json{{"key", "k"}, {"offset", 10}, {"length", 10}}));
  EXPECT_EQ(stats["ranges"][1]["length"], 700'000);
}

TEST_P(Wire, StopInTheMiddleIsQuick) {
  sim_->faults("stall=1:60s");
  std::thread reader([&] { (void)sim_->get("/b/k"); });
  while (sim_->stats()["in_flight"] == 0) std::this_thread::sleep_for(milliseconds(5));
  const auto begin = Clock::system().now();
  sim_->server->stop();
  EXPECT_LT(seconds_since(begin), 8.0);
  reader.join();
}

TEST_P(Wire, AdminErrorsSayWhatThereIs) {
  test::RawClient client(sim_->server->port());
  EXPECT_EQ(client.request("PUT", "/_sim/faults", "", "boom=1").status, 400);
  EXPECT_EQ(client.request("PUT", "/_sim/options", "", "[]").status, 400);
  EXPECT_EQ(client.request("PUT", "/_sim/options", "", R"({"speed": 1})").status, 400);
  EXPECT_EQ(client.request("PUT", "/_sim/options", "", R"({"total": "fast"})").status, 400);
  EXPECT_EQ(client.request("GET", "/_sim/other").status, 404);
}

TEST(Memory, BulkKeysAndStaleListings) {
  Sim sim;
  EXPECT_EQ(sim.client->request("POST", "/_sim/bulk?bucket=b&prefix=p/&count=2500&size=3").status, 200);
  EXPECT_EQ(xml_value(sim.get("/b?list-type=2").body, "KeyCount"), "1000");
  EXPECT_EQ(xml_value(sim.get("/b?list-type=2&start-after=p/00001999").body, "KeyCount"), "500");
  EXPECT_EQ(sim.get("/b/p/00002499").body, "xxx");
  EXPECT_EQ(sim.client->request("POST", "/_sim/bulk?count=1").status, 400);
  sim.put("/c");
  sim.put("/c/old", "1");
  std::this_thread::sleep_for(milliseconds(300));
  sim.put("/c/new", "1");
  sim.client->request("DELETE", "/c/old");
  sim.faults("stale_list=1:200ms*1");
  const auto stale = sim.get("/c?list-type=2");
  EXPECT_NE(stale.body.find("<Key>old</Key>"), std::string::npos);
  EXPECT_EQ(stale.body.find("<Key>new</Key>"), std::string::npos);
  EXPECT_NE(sim.get("/c?list-type=2").body.find("<Key>new</Key>"), std::string::npos);
}

TEST(Proxy, UpstreamThatGoesAndComesBack) {
  auto behind = std::make_unique<Sim>();
  const std::uint16_t port = behind->server->port();
  Options options;
  options.mode = Options::Mode::kProxy;
  options.upstream = fmt::format("http://127.0.0.1:{}", port);
  Sim sim(options);
  EXPECT_EQ(sim.put("/b").status, 200);
  behind.reset();
  const auto down = sim.get("/b/k");
  EXPECT_EQ(down.status, 502);
  EXPECT_EQ(xml_value(down.body, "Code"), "BadGateway");
  Options again;
  again.port = port;
  behind = std::make_unique<Sim>(again);
  EXPECT_EQ(sim.put("/b").status, 200) << "on the same client connection";
  behind->faults("cut=1*1");
  behind->put("/b/k", std::string(300'000, 'x'));
  const auto cut = sim.get("/b/k");
  EXPECT_EQ(cut.status, 200);
  EXPECT_FALSE(cut.complete) << "what the upstream breaks is not mended";
  EXPECT_EQ(sim.get("/b/k").body.size(), 300'000U);
}

TEST(Proxy, IdleUpstreamConnectionsAreReplaced) {
  Options short_lived;
  short_lived.idle_timeout = milliseconds(50);
  Sim behind(short_lived);
  Options options;
  options.mode = Options::Mode::kProxy;
  options.upstream = fmt::format("http://127.0.0.1:{}", behind.server->port());
  Sim sim(options);
  sim.put("/b");
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(milliseconds(40 + i * 10));
    EXPECT_EQ(sim.get("/b?list-type=2").status, 200);
  }
  EXPECT_TRUE(sim.client->connected());
}

}  // namespace
}  // namespace thermo::s3sim
