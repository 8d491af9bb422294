#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/log.h"
#include "base/metrics.h"

namespace thermo {
namespace {

TEST(Metrics, TextPage) {
  metrics::Registry registry;
  registry.counter("b_total", "Bytes", {{"tier", "warm"}, {"kind", "a\"b\\c\nd"}}).add(7);
  registry.counter("a_total", "First").add();
  registry.gauge("depth", "Queue").set(-3);
  auto& histogram = registry.histogram("t_seconds", "Time", {{"verb", "get"}});
  histogram.observe_seconds(0.0000005);
  histogram.observe_seconds(0.5);
  histogram.observe_seconds(100);
  const std::string text = registry.text();
  EXPECT_EQ(text.find("# HELP a_total First\n# TYPE a_total counter\na_total 1\n# HELP b_total Bytes\n# TYPE b_total counter\n"
                      "b_total{kind=\"a\\\"b\\\\c\\nd\",tier=\"warm\"} 7\n# HELP depth Queue\n# TYPE depth gauge\ndepth -3\n"),
            0U)
      << text;
  EXPECT_NE(text.find("# TYPE t_seconds histogram\n"), std::string::npos);
  EXPECT_NE(text.find("t_seconds_bucket{verb=\"get\",le=\"1e-06\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("t_seconds_bucket{verb=\"get\",le=\"0.2\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("t_seconds_bucket{verb=\"get\",le=\"0.5\"} 2\n"), std::string::npos);
  EXPECT_NE(text.find("t_seconds_bucket{verb=\"get\",le=\"10\"} 2\n"), std::string::npos);
  EXPECT_NE(text.find("t_seconds_bucket{verb=\"get\",le=\"+Inf\"} 3\n"), std::string::npos);
  EXPECT_NE(text.find("t_seconds_count{verb=\"get\"} 3\n"), std::string::npos);
  EXPECT_NE(text.find("t_seconds_sum{verb=\"get\"} 100.5"), std::string::npos);
}

TEST(Metrics, TheSameNameAndLabelsAreTheSameObject) {
  metrics::Registry registry;
  auto& one = registry.counter("c", "", {{"x", "1"}});
  EXPECT_EQ(&registry.counter("c", "", {{"x", "1"}}), &one);
  EXPECT_NE(&registry.counter("c", "", {{"x", "2"}}), &one);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) {
        registry.counter("c", "", {{"x", "1"}}).add();
        registry.gauge("g", "", {{"t", std::to_string(t)}}).add(i % 2 == 0 ? 1 : -1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const auto values = registry.snapshot();
  EXPECT_EQ(values.at("c{x=\"1\"}"), 4000);
  EXPECT_EQ(values.at("g{t=\"3\"}"), 0);
}

TEST(Metrics, HelpStaysOnItsLine) {
  metrics::Registry registry;
  registry.gauge("g", "two\nlines \\ and a slash").set(1);
  EXPECT_EQ(registry.text(), "# HELP g two\\nlines \\\\ and a slash\n# TYPE g gauge\ng 1\n");
}

TEST(Metrics, Quantiles) {
  metrics::Histogram histogram;
  EXPECT_EQ(histogram.quantile(0.5), 0);
  for (int i = 0; i < 90; ++i) histogram.observe_seconds(0.0009);
  for (int i = 0; i < 10; ++i) histogram.observe_seconds(0.09);
  EXPECT_EQ(histogram.quantile(0.5), 1e-3);
  EXPECT_EQ(histogram.quantile(0.99), 0.1);
  EXPECT_EQ(histogram.count(), 100U);
  EXPECT_NEAR(histogram.sum_seconds(), 0.981, 1e-6);
  histogram.observe_seconds(-1);  // a clock that jumped back
  EXPECT_NEAR(histogram.sum_seconds(), 0.981, 1e-6);
  EXPECT_EQ(histogram.bucket(0), 1U);
}

class LogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    log::Options options;
    options.target = path_;
    ASSERT_TRUE(log::configure(options));
  }
  void TearDown() override {
    log::set_channel(log::Channel::kS3, false);
    (void)log::configure({});
    std::remove(path_.c_str());
  }
  std::string content() {
    std::ifstream file(path_);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  const std::string path_ = "/tmp/thermo-log-" + std::to_string(::getpid());
};

TEST_F(LogTest, LevelsAndChannels) {
  log::debug("hidden {}", 1);
  log::info("shown {}", 2);
  log::trace(log::Channel::kS3, "quiet");
  log::set_channel(log::Channel::kS3, true);
  log::trace(log::Channel::kS3, "request {}", 3);
  log::trace(log::Channel::kFuse, "other channel");
  log::set_level(log::Level::kError);
  log::warn("hidden");
  log::error("bad {}", 4);
  log::set_level(log::Level::kInfo);
  const auto text = content();
  EXPECT_EQ(text.find("hidden"), std::string::npos) << text;
  EXPECT_EQ(text.find("quiet"), std::string::npos);
  EXPECT_EQ(text.find("other"), std::string::npos);
  EXPECT_NE(text.find("I shown 2\n"), std::string::npos);
  EXPECT_NE(text.find("request 3\n"), std::string::npos);
  EXPECT_NE(text.find("E bad 4\n"), std::string::npos);
}

TEST_F(LogTest, ABadTargetNamesItselfAndKeepsTheOldOne) {
  log::Options options;
  options.target = "/proc/nothing/here";
  const auto bad = log::configure(options);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(bad.error().message().find("/proc/nothing/here"), std::string::npos);
  log::info("still here");
  EXPECT_NE(content().find("still here"), std::string::npos);
}

TEST(LogRateLimit, OnePerIntervalAndCountsTheRest) {
  FakeClock clock;
  clock.advance(std::chrono::seconds(1));
  log::RateLimit limit(std::chrono::seconds(10), clock);
  std::uint64_t held = 99;
  EXPECT_TRUE(limit.allow(held));
  EXPECT_EQ(held, 0U);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(limit.allow(held));
  clock.advance(std::chrono::seconds(10));
  EXPECT_TRUE(limit.allow(held));
  EXPECT_EQ(held, 5U);
}

}  // namespace
}  // namespace thermo
