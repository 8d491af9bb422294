#include "front/admin/protocol.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "front/admin/client.h"
#include "front/admin/metrics_page.h"

namespace thermo::admin {
namespace {

using nlohmann::json;

// A member of the wrong kind is the sender's error: the daemon with all its mounts goes on.
TEST(AdminProtocol, FlagsOfAnotherKindAreRefused) {
  EXPECT_EQ(*flag_member(json{{"on", false}}, "on", true), false);
  EXPECT_EQ(*flag_member(json::object(), "on", true), true);
  for (const char* value : {"\"true\"", "1", "null", "[]", "{}"}) {
    const auto flag = flag_member(json{{"on", json::parse(value)}}, "on", true);
    ASSERT_FALSE(flag) << value;
    EXPECT_EQ(flag.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(flag.error().message().find("\"on\""), std::string_view::npos);
  }
}

TEST(AdminProtocol, NumbersMustBeWholeAndInBounds) {
  const auto number = [](const char* text) { return number_member(json{{"n", json::parse(text)}}, "n", 7, -1, 100); };
  EXPECT_EQ(*number_member(json::object(), "n", 7, -1, 100), 7);
  EXPECT_EQ(*number("-1"), -1);
  EXPECT_EQ(*number("100"), 100);
  for (const char* text : {"101", "-2", "1.5", "6e23", "1e400000", "18446744073709551615", "\"1\"", "true", "null", "[1]"}) {
    const auto value = json::parse(text, nullptr, false);
    if (value.is_discarded()) continue;
    const auto refused = number_member(json{{"n", value}}, "n", 7, -1, 100);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code(), ErrorCode::kInvalidArgument);
  }
}

TEST(MetricsPage, ListensOnLoopbackOfIPv4Only) {
  EXPECT_EQ(*parse_listen_address("127.0.0.1:9100"), (ListenAddress{"127.0.0.1", 9100}));
  EXPECT_EQ(*parse_listen_address("localhost:0"), (ListenAddress{"127.0.0.1", 0}));
  // [::1] was taken, and failed only when the daemon tried to listen there.
  for (const char* text : {"[::1]:9100", "::1:9100", "[::1]:0"}) {
    const auto refused = parse_listen_address(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(refused.error().message().find("IPv4 only"), std::string_view::npos) << refused.error().message();
  }
  for (const char* text : {"9100", "0.0.0.0:9100", "127.0.0.1:", "127.0.0.1:65536", "[::1]"})
    EXPECT_FALSE(parse_listen_address(text)) << text;
}

TEST(AdminClient, TrustsDaemonsOfRootOfItsUserAndOfTheGroup) {
  constexpr uid_t kUser = 1000;
  constexpr uid_t kOther = 1001;
  constexpr gid_t kGroup = 77;
  constexpr gid_t kNone = static_cast<gid_t>(-1);
  EXPECT_TRUE(may_serve(0, kUser, kUser, 5, kNone));
  EXPECT_TRUE(may_serve(kUser, kUser, 0, 5, kNone));
  EXPECT_TRUE(may_serve(kOther, kUser, kOther, kGroup, kGroup));
  EXPECT_FALSE(may_serve(kOther, kUser, kOther, 5, kGroup)) << "not the group's socket";
  EXPECT_FALSE(may_serve(kOther, kUser, kUser, kGroup, kGroup)) << "not the owner of the folder";
  EXPECT_FALSE(may_serve(kOther, kUser, kOther, kNone, kNone)) << "no such group";
  EXPECT_FALSE(may_serve(kOther, 0, kOther, kGroup, kGroup)) << "root is no member";
}

TEST(AdminProtocol, NestingIsBounded) {
  const auto nested = [](std::size_t depth) {
    return R"({"command":"x","ok":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  json value;
  EXPECT_TRUE(parse_request(nested(50)));
  EXPECT_TRUE(parse_answer(nested(50), value));
  for (const std::size_t depth : {std::size_t{100}, std::size_t{1'000'000}}) {
    EXPECT_EQ(parse_request(nested(depth)).error().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(parse_answer(nested(depth), value).error().code(), ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace thermo::admin
