// Endpoints, bucket names, addressing styles and the store id.

#include "store/s3/s3_address.h"

#include <gtest/gtest.h>

namespace thermo::store {
namespace {

S3Options options(const std::string& bucket, const std::string& endpoint, const std::string& region = "") {
  S3Options o;
  o.bucket = bucket;
  o.endpoint = endpoint;
  o.region = region;
  return o;
}

std::string url(const S3Options& o, const std::string& key = "a b/dt=1") {
  auto address = S3Address::make(o);
  if (!address) return "!" + std::string(address.error().message());
  return address->origin(address->first_region()) + address->path(key);
}

TEST(S3Address, AwsIsVirtualHostedInItsRegion) {
  EXPECT_EQ(url(options("tables", "", "eu-west-1")), "https://tables.s3.eu-west-1.amazonaws.com/a%20b/dt%3D1");
  EXPECT_EQ(url(options("tables", "")), "https://tables.s3.us-east-1.amazonaws.com/a%20b/dt%3D1");
  EXPECT_EQ(url(options("tables", "", "cn-north-1")), "https://tables.s3.cn-north-1.amazonaws.com.cn/a%20b/dt%3D1");
  EXPECT_EQ(url(options("dotted.name", "")), "https://s3.us-east-1.amazonaws.com/dotted.name/a%20b/dt%3D1");
  EXPECT_EQ(url(options("UPPER", "")), "https://s3.us-east-1.amazonaws.com/UPPER/a%20b/dt%3D1");
  auto address = S3Address::make(options("tables", ""));
  EXPECT_EQ(address->host("ap-south-1"), "tables.s3.ap-south-1.amazonaws.com");
}

TEST(S3Address, OthersArePathStyleUnlessTold) {
  EXPECT_EQ(url(options("tables", "http://127.0.0.1:8333")), "http://127.0.0.1:8333/tables/a%20b/dt%3D1");
  EXPECT_EQ(url(options("tables", "http://LocalHost:80/")), "http://localhost/tables/a%20b/dt%3D1");
  EXPECT_EQ(url(options("tables", "https://[::1]:9000")), "https://[::1]:9000/tables/a%20b/dt%3D1");
  EXPECT_EQ(url(options("tables", "http://[::1]")), "http://[::1]/tables/a%20b/dt%3D1");
  EXPECT_EQ(url(options("tables", "https://minio.example:443"), ""), "https://minio.example/tables");
  auto told = options("tables", "http://store.example:9000");
  told.addressing = Addressing::kVirtualHost;
  EXPECT_EQ(url(told), "http://tables.store.example:9000/a%20b/dt%3D1");
  told.bucket = "with.dot";
  EXPECT_EQ(url(told)[0], '!');
  told.bucket = "tables";
  told.endpoint = "http://10.0.0.1:9000";
  EXPECT_EQ(url(told)[0], '!');
}

TEST(S3Address, KeysAreNeverNormalised) {
  const auto o = options("tables", "http://h:1");
  EXPECT_EQ(url(o, "./x"), "http://h:1/tables/./x");
  EXPECT_EQ(url(o, "a//b"), "http://h:1/tables/a//b");
  EXPECT_EQ(url(o, "/lead"), "http://h:1/tables//lead");
  EXPECT_EQ(url(o, "%2F+?"), "http://h:1/tables/%252F%2B%3F");
}

TEST(S3Address, IdIsOneForAllSpellings) {
  const auto id = [](const S3Options& o) { return S3Address::make(o)->id(); };
  EXPECT_EQ(id(options("tables", "HTTP://Host:80")), "s3://host/tables");
  EXPECT_EQ(id(options("tables", "https://host")), "s3://host/tables");
  EXPECT_EQ(id(options("tables", "http://host:9000/")), "s3://host:9000/tables");
  for (const auto& o :
       {options("tables", ""), options("tables", "", "eu-west-1"), options("tables", "https://s3.amazonaws.com"),
        options("tables", "https://s3.eu-west-1.amazonaws.com"), options("tables", "https://s3-eu-west-1.amazonaws.com"),
        options("tables", "https://s3.dualstack.eu-west-1.amazonaws.com")}) {
    EXPECT_EQ(id(o), "s3://s3.amazonaws.com/tables") << o.endpoint;
  }
  auto path = options("tables", "https://s3.eu-west-1.amazonaws.com");
  path.addressing = Addressing::kPath;
  EXPECT_EQ(id(path), "s3://s3.amazonaws.com/tables");
}

TEST(S3Address, RegionOfTheEndpointIsUsed) {
  EXPECT_EQ(S3Address::make(options("tables", "https://s3.eu-west-1.amazonaws.com"))->first_region(), "eu-west-1");
  EXPECT_EQ(S3Address::make(options("tables", "https://s3-external-1.amazonaws.com"))->first_region(), "us-east-1");
  EXPECT_EQ(S3Address::make(options("tables", "https://s3.dualstack.eu-west-1.amazonaws.com"))->host("eu-west-1"),
            "tables.s3.dualstack.eu-west-1.amazonaws.com");
  EXPECT_EQ(S3Address::make(options("tables", "http://h:1"))->first_region(), "us-east-1");
  // A private endpoint below amazonaws.com is not the regional one: its host stays.
  auto vpc = S3Address::make(options("tables", "https://bucket.vpce-1a2b.s3.eu-west-1.vpce.amazonaws.com"));
  EXPECT_FALSE(vpc->is_aws());
}

TEST(S3Address, BadInputIsNamed) {
  for (const char* bucket :
       {"", "ab", "a b", "a/b", "-abc", "abc-", "a..b", "192.168.0.1", "b\xC3\xBC", "arn:aws:s3:us-east-1:1:accesspoint/x"}) {
    auto address = S3Address::make(options(bucket, ""));
    ASSERT_FALSE(address) << bucket;
    EXPECT_EQ(address.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(address.error().message().find(bucket), std::string::npos);
  }
  for (const char* endpoint : {"127.0.0.1:8333", "ftp://h", "http://", "http://h:0", "http://h:99999", "http://h:x", "http://h:",
                               "http://u:p@h", "http://h/path", "http://h?x=1", "http://a b", "http://[::1", "http://[zz]:1"}) {
    auto address = S3Address::make(options("tables", endpoint));
    ASSERT_FALSE(address) << endpoint;
    EXPECT_EQ(address.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(address.error().message().find(endpoint), std::string::npos);
  }
  EXPECT_FALSE(S3Address::make(options("tables", "", "eu west")));
  EXPECT_FALSE(S3Address::make(options("tables", "", "evil.example/")));
}

}  // namespace
}  // namespace thermo::store
