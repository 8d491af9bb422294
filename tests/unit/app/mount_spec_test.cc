#include "app/mount_spec.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace thermo::app {
namespace {

using nlohmann::json;

json sent() {
  MountSpec spec;
  spec.store.bucket = "marketdata";
  spec.store.prefix = "a b/\xff/";
  spec.mount_point = "/mnt/t";
  spec.uid = 0xfffffffe;
  spec.ttl = Nanos::max();
  spec.timeout = Nanos(30'000'000'000);
  return to_json(spec);
}

TEST(MountSpec, ArrivesAsItWasSent) {
  const auto spec = mount_spec_from_json(sent());
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->store.prefix, "a b/\xff/");
  EXPECT_EQ(spec->uid, 0xfffffffeU);
  EXPECT_EQ(spec->ttl, Nanos::max());
  EXPECT_EQ(to_json(*spec), sent());
}

TEST(MountSpec, NumbersThatDoNotFitAreRefused) {
  for (const auto& [name, text] : {std::pair{"ttl_ns", "6e23"},
                                   {"ttl_ns", "-1"},
                                   {"timeout_ns", "0"},
                                   {"timeout_ns", "1.5"},
                                   {"uid", "-1"},
                                   {"uid", "4294967296"},
                                   {"gid", "\"0\""},
                                   {"file_mode", "512"},
                                   {"addressing", "3"}}) {
    auto request = sent();
    request[name] = json::parse(text);
    const auto spec = mount_spec_from_json(request);
    ASSERT_FALSE(spec) << name << " = " << text;
    EXPECT_EQ(spec.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(spec.error().message().find(name), std::string_view::npos) << spec.error().message();
  }
}

TEST(MountSpec, MissingMembersAndOtherKindsAreRefused) {
  const auto request = sent();
  for (const auto& [name, value] : request.items()) {
    auto lacking = request;
    lacking.erase(name);
    EXPECT_FALSE(mount_spec_from_json(lacking)) << name;
    auto other = request;
    other[name] = json::array();
    EXPECT_FALSE(mount_spec_from_json(other)) << name;
  }
  EXPECT_FALSE(mount_spec_from_json(json("text")));
}

}  // namespace
}  // namespace thermo::app
