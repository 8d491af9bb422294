// Listing, writing, removing, and what the store learns from refusals.

#include <algorithm>

#include "store/s3/s3_checksum.h"
#include "store/s3/s3_error.h"
#include "unit/store/s3/s3_testing.h"

namespace thermo::store {
namespace {

using namespace testing;

constexpr const char* kEmptyList = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";

TEST(S3List, RequestCarriesEncodedAndSortedParameters) {
  Scripted s([](TinyConnection& c, const TinyRequest&) { c.answer(200, "", kEmptyList); });
  ASSERT_TRUE(s.store().list_page({}, listing("dt=1/a b", "/", "dt=1/a b/\xC3\xA9", 7)));
  ASSERT_TRUE(s.store().list_page({}, listing("", "", "ignored", 1000, "tok+/==")));
  const auto seen = s.server.requests();
  EXPECT_EQ(
      seen.at(0).target,
      "/bucket?delimiter=%2F&encoding-type=url&list-type=2&max-keys=7&prefix=dt%3D1%2Fa%20b&start-after=dt%3D1%2Fa%20b%2F%C3%A9");
  EXPECT_EQ(seen.at(1).target, "/bucket?continuation-token=tok%2B%2F%3D%3D&encoding-type=url&list-type=2&max-keys=1000&prefix=");
}

TEST(S3List, ErrorsNameTheBucket) {
  Scripted s([](TinyConnection& c, const TinyRequest& r) {
    if (r.target.find("prefix=bad") != std::string::npos) return c.answer(200, "", "<html/>");
    if (r.target.find("prefix=bare") != std::string::npos) return c.answer(404, "", "");
    c.answer(404, "", error_xml("NoSuchBucket"));
  });
  for (const char* prefix : {"x", "bare"}) {
    auto page = s.store().list_page({}, listing(prefix));
    ASSERT_FALSE(page);
    EXPECT_EQ(page.error().code(), ErrorCode::kNoSuchBucket);
    EXPECT_NE(page.error().message().find("'bucket'"), std::string::npos);
  }
  EXPECT_EQ(s.store().list_page({}, listing("bad")).error().code(), ErrorCode::kCorrupt);
}

TEST(S3Put, SendsConditionsTypeAndMetadata) {
  Scripted s([](TinyConnection& c, const TinyRequest&) { c.answer(200, "ETag: \"new\"\r\n", ""); });
  PutOptions options;
  options.if_none_match = true;
  options.content_type = "text/plain";
  options.metadata = {{"mtime", "1.5"}, {"mode", "33188"}};
  auto info = s.store().put({}, "a+b", bytes_of("body"), options);
  ASSERT_TRUE(info) << info.error().describe();
  EXPECT_EQ(info->etag, "\"new\"");
  const auto r = s.server.requests().at(0);
  EXPECT_EQ(r.method, "PUT");
  EXPECT_EQ(r.target, "/bucket/a%2Bb");
  EXPECT_EQ(r.body, "body");
  EXPECT_EQ(r.header("if-none-match"), "*");
  EXPECT_EQ(r.header("content-type"), "text/plain");
  EXPECT_EQ(r.header("x-amz-meta-mtime"), "1.5");
  EXPECT_EQ(r.header("x-amz-content-sha256"), net::sha256_hex("body"));
  EXPECT_FALSE(r.has("if-match"));
  for (const auto& h : r.headers)
    EXPECT_FALSE(h.first.starts_with("x-amz-checksum") || h.first.starts_with("x-amz-sdk")) << h.first;
  options = {};
  options.if_match = "\"old\"";
  ASSERT_TRUE(s.store().put({}, "k", {}, options));
  EXPECT_EQ(s.server.requests().at(1).header("if-match"), "\"old\"");
  EXPECT_EQ(s.server.requests().at(1).header("content-length"), "0");
}

TEST(S3Put, RefusesMetadataThatIsNoHeader) {
  Scripted s([](TinyConnection& c, const TinyRequest&) { c.answer(200, "ETag: \"new\"\r\n", ""); });
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"a b", "1"}, {"", "1"}, {"a:b", "1"}, {"fine", "line\nbreak"}}) {
    PutOptions options;
    options.metadata[name] = value;
    EXPECT_EQ(s.store().put({}, "k", bytes_of("x"), options).error().code(), ErrorCode::kInvalidArgument) << name;
  }
  EXPECT_TRUE(s.server.requests().empty());
}

TEST(S3Put, ConflictAndPreconditionAreToldApart) {
  for (const auto& [status, code] : {std::pair{409, ErrorCode::kConflict}, std::pair{412, ErrorCode::kPreconditionFailed}}) {
    Scripted s([status = status](TinyConnection& c, const TinyRequest&) {
      c.answer(status, "", error_xml(status == 409 ? "ConditionalRequestConflict" : "PreconditionFailed"));
    });
    auto info = s.store().put({}, "k", bytes_of("x"), {});
    ASSERT_FALSE(info);
    EXPECT_EQ(info.error().code(), code);
    EXPECT_EQ(info.error().retry_class(), status == 409 ? RetryClass::kRetry : RetryClass::kNever);
  }
}

TEST(S3Remove, OneKeyIsADelete) {
  Scripted s([](TinyConnection& c, const TinyRequest& r) {
    if (r.target == "/bucket/gone") return c.answer(404, "", error_xml("NoSuchKey"));
    if (r.target == "/bucket/locked") return c.answer(403, "", error_xml("AccessDenied"));
    if (r.target == "/bucket/busy") return c.answer(503, "", error_xml("SlowDown"));
    c.send("HTTP/1.1 204 No Content\r\n\r\n");
  });
  EXPECT_TRUE(s.store().remove({}, {"k"})->empty());
  EXPECT_EQ(s.server.requests().at(0).method, "DELETE");
  EXPECT_TRUE(s.store().remove({}, {"gone"})->empty());
  auto locked = s.store().remove({}, {"locked"});
  ASSERT_TRUE(locked);
  ASSERT_EQ(locked->size(), 1U);
  EXPECT_EQ(locked->at(0).error.code(), ErrorCode::kAccessDenied);
  EXPECT_EQ(s.store().remove({}, {"busy"}).error().code(), ErrorCode::kThrottled);
}

TEST(S3Remove, ManyKeysAreOneSignedPost) {
  Scripted s([](TinyConnection& c, const TinyRequest& r) {
    if (r.method == "DELETE") return c.send("HTTP/1.1 204 No Content\r\n\r\n"), void();
    c.answer(200, "",
             "<DeleteResult><Error><Key>b&amp;</Key><Code>AccessDenied</Code><Message>no</Message></Error><Error><Key>x</"
             "Key><Code>NoSuchKey</Code>"
             "</Error><Error><Key>c</Key><Code>InternalError</Code><Message>oops</Message></Error></DeleteResult>");
  });
  auto failures = s.store().remove({}, {"a", "b&", "c", "x", "ctl\x01"});
  ASSERT_TRUE(failures) << failures.error().describe();
  ASSERT_EQ(failures->size(), 2U);
  EXPECT_EQ(failures->at(0).key, "b&");
  EXPECT_EQ(failures->at(0).error.code(), ErrorCode::kAccessDenied);
  EXPECT_EQ(failures->at(1).error.code(), ErrorCode::kUnavailable);
  const auto seen = s.server.requests();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].method, "POST");
  EXPECT_EQ(seen[0].target, "/bucket?delete=");
  EXPECT_EQ(seen[0].header("content-md5"), md5_base64(seen[0].body));
  EXPECT_NE(seen[0].body.find("<Key>b&amp;</Key>"), std::string::npos);
  EXPECT_EQ(seen[1].method, "DELETE");
  EXPECT_EQ(seen[1].target, "/bucket/ctl%01");
}

TEST(S3Remove, LimitsAndErrorsInsideA200) {
  Scripted s([](TinyConnection& c, const TinyRequest&) { c.answer(200, "", error_xml("InternalError")); });
  EXPECT_TRUE(s.store().remove({}, {})->empty());
  EXPECT_EQ(s.store().remove({}, std::vector<std::string>(1001, "k")).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(s.server.requests().empty());
  EXPECT_EQ(s.store().remove({}, {"a", "b"}).error().code(), ErrorCode::kUnavailable);
}

TEST(S3Errors, CodesToKindsAndMends) {
  struct Case {
    int status;
    const char* code;
    ErrorCode expected;
    const char* says;
  };
  for (const auto& t : std::vector<Case>{{404, "NoSuchKey", ErrorCode::kNotFound, "NoSuchKey"},
                                         {404, "NoSuchBucket", ErrorCode::kNoSuchBucket, "check the bucket's name"},
                                         {403, "AccessDenied", ErrorCode::kAccessDenied, "no permission"},
                                         {403, "SignatureDoesNotMatch", ErrorCode::kAccessDenied, "the secret key is wrong"},
                                         {403, "InvalidAccessKeyId", ErrorCode::kAccessDenied, "no such access key"},
                                         {400, "ExpiredToken", ErrorCode::kExpiredCredentials, "expired"},
                                         {503, "SlowDown", ErrorCode::kThrottled, "SlowDown"},
                                         {400, "RequestTimeout", ErrorCode::kTimeout, "RequestTimeout"},
                                         {500, "InternalError", ErrorCode::kUnavailable, "InternalError"},
                                         {403, "InvalidObjectState", ErrorCode::kNotSupported, "restore it first"},
                                         {501, "NotImplemented", ErrorCode::kNotSupported, ""},
                                         {418, "Whatever", ErrorCode::kInvalidArgument, "Whatever"}}) {
    Scripted s([&](TinyConnection& c, const TinyRequest&) { c.answer(t.status, "", error_xml(t.code, "words of the store")); });
    StringSink sink;
    auto info = s.store().get_range({}, "the/key", kEtag, 10, {0, 5}, sink);
    ASSERT_FALSE(info) << t.code;
    const std::string message(info.error().message());
    EXPECT_EQ(info.error().code(), t.expected) << t.code;
    EXPECT_EQ(info.error().http_status(), t.status);
    for (const char* part : {"the/key", "words of the store", "REQ1", t.says})
      EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_EQ(message.find("secret-1"), std::string::npos);
    EXPECT_EQ(sink.text, "");
    EXPECT_EQ(s.server.requests().size(), 1U) << t.code;  // the retry layer retries, not the store
  }
}

std::string scope_region(const TinyRequest& r) {
  const std::string auth = r.header("authorization");
  const std::size_t at = auth.find("/20");
  return auth.substr(at + 10, auth.find("/s3/") - at - 10);
}

TEST(S3Region, IsLearntOnceAndRemembered) {
  for (const int status : {301, 307, 400, 403}) {
    for (const bool head : {false, true}) {
      Scripted s([&](TinyConnection& c, const TinyRequest& r) {
        if (scope_region(r) == "eu-west-1") {
          c.send("HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 0\r\n\r\n");
        } else if (head) {
          c.send("HTTP/1.1 " + std::to_string(status) + " X\r\nx-amz-bucket-region: eu-west-1\r\nContent-Length: 10\r\n\r\n");
        } else {
          c.answer(status, "", error_xml("AuthorizationHeaderMalformed", "wrong", "<Region>eu-west-1</Region>"));
        }
      });
      if (head) {
        ASSERT_TRUE(s.store().head({}, "k")) << status;
        ASSERT_TRUE(s.store().head({}, "k"));
      } else {
        ASSERT_TRUE(s.store().put({}, "k", bytes_of(""), {})) << status;
        ASSERT_TRUE(s.store().put({}, "k", bytes_of(""), {}));
      }
      EXPECT_EQ(s.server.requests().size(), 3U) << status;
    }
  }
}

TEST(S3Region, WithoutAWordOrInCirclesItIsAnError) {
  int n = 0;
  Scripted s([&n](TinyConnection& c, const TinyRequest&) {
    c.answer(301, "x-amz-bucket-region: region-" + std::to_string(++n) + "\r\n", error_xml("PermanentRedirect"));
  });
  auto page = s.store().list_page({}, listing(""));
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code(), ErrorCode::kWrongRegion);
  EXPECT_NE(page.error().message().find("region-2"), std::string::npos);
  EXPECT_EQ(n, 2);
  Scripted evil([](TinyConnection& c, const TinyRequest&) { c.answer(301, "x-amz-bucket-region: evil.example/x\r\n", ""); });
  EXPECT_EQ(evil.store().list_page({}, listing("")).error().code(), ErrorCode::kWrongRegion);
  EXPECT_EQ(evil.server.requests().size(), 1U);
}

TEST(S3Credentials, RotatedOnesAreTriedOnce) {
  for (const char* code : {"ExpiredToken", "InvalidToken", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied"}) {
    Scripted s([&](TinyConnection& c, const TinyRequest& r) {
      if (r.header("authorization").find("KEY1/") != std::string::npos) return c.answer(403, "", error_xml(code));
      c.answer(200, "", kEmptyList);
    });
    s.credentials->rotate = true;
    auto page = s.store().list_page({}, listing(""));
    ASSERT_TRUE(page) << code << page.error().describe();
    EXPECT_EQ(s.server.requests().size(), 2U);
    EXPECT_EQ(s.credentials->invalidations, 1);
  }
}

TEST(S3Credentials, UnchangedOnesAreNotTriedAgain) {
  Scripted s([](TinyConnection& c, const TinyRequest&) { c.answer(403, "", error_xml("AccessDenied")); });
  EXPECT_EQ(s.store().list_page({}, listing("")).error().code(), ErrorCode::kAccessDenied);
  EXPECT_EQ(s.server.requests().size(), 1U);
  s.credentials->rotate = true;  // new ones every time, all refused: no endless loop
  EXPECT_EQ(s.store().list_page({}, listing("")).error().code(), ErrorCode::kAccessDenied);
  EXPECT_EQ(s.server.requests().size(), 3U);
}

TEST(S3Credentials, TokenIsSignedAnonymousSignsNothing) {
  Scripted s([](TinyConnection& c, const TinyRequest&) { c.answer(200, "", kEmptyList); });
  s.options.requester_pays = true;
  s.credentials->token = "session";
  ASSERT_TRUE(s.store().list_page({}, listing("")));
  s.credentials->anonymous = true;
  ASSERT_TRUE(s.store().list_page({}, listing("")));
  const auto seen = s.server.requests();
  EXPECT_EQ(seen[0].header("x-amz-security-token"), "session");
  EXPECT_EQ(seen[0].header("x-amz-request-payer"), "requester");
  EXPECT_NE(seen[0].header("authorization").find("x-amz-request-payer;x-amz-security-token"), std::string::npos);
  EXPECT_FALSE(seen[1].has("authorization"));
  EXPECT_FALSE(seen[1].has("x-amz-content-sha256"));
}

TEST(S3Clock, SkewIsLearntFromTheStoresDate) {
  // 2026-11-30T22:02:38Z at the store; this machine is 20 minutes ahead.
  FakeClock clock(1796076158000000000 + 20 * 60 * 1'000'000'000LL);
  for (const bool head : {false, true}) {
    Scripted s([&](TinyConnection& c, const TinyRequest& r) {
      const std::string date = "Date: Mon, 30 Nov 2026 22:02:38 GMT\r\n";
      if (r.header("x-amz-date").starts_with("20261130T2202"))
        return c.send("HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 0\r\n\r\n"), void();
      if (head) return c.send("HTTP/1.1 403 F\r\n" + date + "Content-Length: 9\r\n\r\n"), void();
      c.answer(403, date, error_xml("RequestTimeTooSkewed"));
    });
    s.options.clock = &clock;
    for (int i = 0; i < 2; ++i) {
      if (head) {
        ASSERT_TRUE(s.store().head({}, "k"));
      } else {
        ASSERT_TRUE(s.store().put({}, "k", {}, {}));
      }
    }
    EXPECT_EQ(s.server.requests().size(), 3U);  // learnt once
  }
}

TEST(S3Clock, HopelessSkewSaysHowFarAndWhatToDo) {
  FakeClock clock(1796076158000000000 + 20 * 60 * 1'000'000'000LL);
  Scripted s([](TinyConnection& c, const TinyRequest&) {
    c.answer(403, "Date: Mon, 30 Nov 2026 22:02:38 GMT\r\n", error_xml("RequestTimeTooSkewed"));
  });
  s.options.clock = &clock;
  auto page = s.store().list_page({}, listing(""));
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code(), ErrorCode::kClockSkew);
  EXPECT_NE(page.error().message().find("20 min ahead of the store"), std::string::npos) << page.error().message();
  EXPECT_NE(page.error().message().find("timedatectl"), std::string::npos);
  EXPECT_EQ(s.server.requests().size(), 2U);
}

TEST(S3Store, MakeTouchesNoNetworkAndNamesBadInput) {
  S3Options options;
  options.bucket = "no_bucket!";
  EXPECT_EQ(make_s3_store(options).error().code(), ErrorCode::kInvalidArgument);
  options.bucket = "tables";
  options.endpoint = "http://Host:9000";
  auto store = make_s3_store(options);
  ASSERT_TRUE(store);
  EXPECT_EQ((*store)->id(), "s3://host:9000/tables");
  EXPECT_EQ((*store)->create_multipart({}, "k", {}).error().code(), ErrorCode::kNotSupported);
}

}  // namespace
}  // namespace thermo::store
