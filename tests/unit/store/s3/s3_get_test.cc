// GET and HEAD: what is asked for, and what is accepted as an answer.

#include <thread>

#include "store/s3/s3_body.h"
#include "unit/store/s3/s3_testing.h"

namespace thermo::store {
namespace {

using namespace testing;

const std::string kBody = "0123456789";

std::string etag_header() { return std::string("ETag: ") + kEtag + "\r\n"; }

// Answers like a good server that holds kBody under every key.
void serve_body(TinyConnection& c, const TinyRequest& r, const std::string& more = "") {
  const std::string range = r.header("range");
  if (range.empty()) return c.answer(200, etag_header() + more, kBody);
  const std::size_t from = std::stoul(range.substr(6));
  const std::size_t to = std::stoul(range.substr(range.find('-') + 1));
  c.answer(206, etag_header() + more + "Content-Range: bytes " + std::to_string(from) + "-" + std::to_string(to) + "/10\r\n",
           kBody.substr(from, to - from + 1));
}

TEST(S3Get, RangeWithIfMatchAndWithoutObjectChecksum) {
  Scripted s(
      [](TinyConnection& c, const TinyRequest& r) { serve_body(c, r, "Last-Modified: Mon, 30 Nov 2026 22:02:38 GMT\r\n"); });
  StringSink sink;
  auto info = s.store().get_range({}, "dt=1/a b", kEtag, 10, {2, 3}, sink);
  ASSERT_TRUE(info) << info.error().describe();
  EXPECT_EQ(sink.text, "234");
  EXPECT_EQ(info->etag, kEtag);
  EXPECT_EQ(info->object_size, 10U);
  EXPECT_EQ(info->mtime, 1796076158000000000);
  const auto r = s.server.requests().at(0);
  EXPECT_EQ(r.target, "/bucket/dt%3D1/a%20b");
  EXPECT_EQ(r.header("range"), "bytes=2-4");
  EXPECT_EQ(r.header("if-match"), kEtag);
  EXPECT_FALSE(r.has("x-amz-checksum-mode"));
  EXPECT_EQ(r.header("x-amz-content-sha256"), net::kEmptySha256);
  EXPECT_NE(r.header("authorization").find("SignedHeaders=host;if-match;range;x-amz-content-sha256;x-amz-date,"),
            std::string::npos);
}

TEST(S3Get, WholeSmallObjectIsVerifiedByItsStoredChecksum) {
  for (const char* algorithm : {"crc32", "crc32c", "crc64nvme", "sha1", "sha256"}) {
    for (const bool damaged : {false, true}) {
      const std::string sum = checksum_of(algorithm, damaged ? "0123456780" : kBody);
      Scripted s([&](TinyConnection& c, const TinyRequest& r) {
        serve_body(c, r, std::string("x-amz-checksum-") + algorithm + ": " + sum + "\r\n");
      });
      StringSink sink;
      auto info = s.store().get_range({}, "k", kEtag, 10, {0, 10}, sink);
      EXPECT_FALSE(s.server.requests().at(0).has("range"));
      EXPECT_EQ(s.server.requests().at(0).header("x-amz-checksum-mode"), "ENABLED");
      if (damaged) {
        ASSERT_FALSE(info) << algorithm;
        EXPECT_EQ(info.error().code(), ErrorCode::kCorrupt);
        EXPECT_EQ(info.error().retry_class(), RetryClass::kRetry);
        EXPECT_EQ(sink.text, "") << "nothing may be delivered unverified";
      } else {
        ASSERT_TRUE(info) << info.error().describe();
        EXPECT_EQ(sink.text, kBody);
      }
    }
  }
}

TEST(S3Get, ManyBodiesAtOnceAreKeptBackAllTheSame) {
  constexpr std::size_t kSize = 8U << 20U;
  const std::string sent(kSize, 'x');
  const std::string sum = checksum_of("crc32c", std::string(kSize - 1, 'x') + "y");
  Scripted s([&](TinyConnection& c, const TinyRequest&) {
    return c.answer(200, etag_header() + "x-amz-checksum-crc32c: " + sum + "\r\n", sent);
  });
  auto& store = s.store();
  std::vector<std::thread> readers;
  std::atomic<int> refused{0};
  for (int i = 0; i < 12; ++i) {  // 96 MiB
    readers.emplace_back([&] {
      StringSink sink;
      const auto info = store.get_range({}, "k", kEtag, kSize, {0, kSize}, sink);
      refused += static_cast<int>(!info && info.error().code() == ErrorCode::kCorrupt && sink.text.empty());
    });
  }
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(refused, 12);
}

TEST(S3Get, OverTlsABodyIsPassedOnAsItComesAndComparedAtItsEnd) {
  for (const char* algorithm : {"crc32", "crc32c", "crc64nvme", "sha1", "sha256"}) {
    for (const bool damaged : {false, true}) {
      StringSink sink;
      RangeBody body({"GET k", kEtag, 10, {0, 10}, Verify::kStreaming}, sink);
      net::HttpResponse head;
      head.status = 200;
      head.headers = {{"etag", kEtag}, {std::string("x-amz-checksum-") + algorithm, checksum_of(algorithm, kBody)}};
      ASSERT_EQ(body.route(head), &body);
      const std::string sent = damaged ? "0123456780" : kBody;
      ASSERT_TRUE(body.write(std::as_bytes(std::span(sent.data(), 4))));
      EXPECT_EQ(sink.text, "0123") << "nobody waits for the rest";
      ASSERT_TRUE(body.write(std::as_bytes(std::span(sent).subspan(4))));
      const auto info = body.finish(head);
      EXPECT_EQ(info.has_value(), !damaged) << algorithm;
      if (!info) {
        EXPECT_EQ(info.error().code(), ErrorCode::kCorrupt);
      }
    }
  }
}

TEST(S3Get, CompositeAndUnknownChecksumsAreNotVerified) {
  for (const char* header :
       {"x-amz-checksum-crc32c: AAAAAA==-3\r\n", "x-amz-checksum-crc32c: AAAAAA==\r\nx-amz-checksum-type: COMPOSITE\r\n",
        "x-amz-checksum-xxhash3: AAAAAA==\r\n"}) {
    Scripted s([&](TinyConnection& c, const TinyRequest& r) { serve_body(c, r, header); });
    StringSink sink;
    EXPECT_TRUE(s.store().get_range({}, "k", kEtag, 10, {0, 10}, sink)) << header;
    EXPECT_EQ(sink.text, kBody);
  }
}

TEST(S3Get, ChecksumOnAPartialAnswerIsIgnored) {
  Scripted s([](TinyConnection& c, const TinyRequest& r) { serve_body(c, r, "x-amz-checksum-crc32c: AAAAAA==\r\n"); });
  StringSink sink;
  EXPECT_TRUE(s.store().get_range({}, "k", kEtag, 10, {0, 5}, sink));
}

TEST(S3Get, ChecksumModeCanBeSwitchedOff) {
  Scripted s([](TinyConnection& c, const TinyRequest& r) { serve_body(c, r); });
  s.options.checksum_mode = false;
  StringSink sink;
  ASSERT_TRUE(s.store().get_range({}, "k", kEtag, 10, {0, 10}, sink));
  const auto seen = s.server.requests().at(0);
  for (const auto& [name, value] : seen.headers)
    EXPECT_FALSE(name.starts_with("x-amz-checksum") || name.starts_with("x-amz-sdk")) << name;
}

struct Odd {
  std::string why, answer;
  ErrorCode expected;
};

TEST(S3Get, AnswersThatAreNotWhatWasAskedFor) {
  const std::string tag = etag_header();
  const std::vector<Odd> cases = {
      {"other version", "206 P\r\nETag: \"other\"\r\nContent-Range: bytes 2-4/10\r\nContent-Length: 3\r\n\r\n234",
       ErrorCode::kPreconditionFailed},
      {"other size", "206 P\r\n" + tag + "Content-Range: bytes 2-4/11\r\nContent-Length: 3\r\n\r\n234",
       ErrorCode::kPreconditionFailed},
      {"other range", "206 P\r\n" + tag + "Content-Range: bytes 3-5/10\r\nContent-Length: 3\r\n\r\n345", ErrorCode::kCorrupt},
      {"no content-range", "206 P\r\n" + tag + "Content-Length: 3\r\n\r\n234", ErrorCode::kCorrupt},
      {"range ignored", "200 OK\r\n" + tag + "Content-Length: 10\r\n\r\n0123456789", ErrorCode::kNotSupported},
      {"whole of another size", "200 OK\r\n" + tag + "Content-Length: 3\r\n\r\n012", ErrorCode::kPreconditionFailed},
      {"no etag", "206 P\r\nContent-Range: bytes 2-4/10\r\nContent-Length: 3\r\n\r\n234", ErrorCode::kCorrupt},
      {"too long", "206 P\r\n" + tag + "Content-Range: bytes 2-4/10\r\nContent-Length: 4\r\n\r\n2345", ErrorCode::kCorrupt},
      {"too short", "206 P\r\n" + tag + "Content-Range: bytes 2-4/10\r\nContent-Length: 2\r\n\r\n23", ErrorCode::kUnavailable},
      {"empty", "206 P\r\nETag: \"other\"\r\nContent-Range: bytes 2-4/10\r\nContent-Length: 0\r\n\r\n",
       ErrorCode::kPreconditionFailed},
      {"cut", "206 P\r\n" + tag + "Content-Range: bytes 2-4/10\r\nContent-Length: 3\r\n\r\n2", ErrorCode::kUnavailable},
      {"412", "412 P\r\nContent-Length: 0\r\n\r\n", ErrorCode::kPreconditionFailed},
      {"416", "416 P\r\nContent-Length: 0\r\n\r\n", ErrorCode::kInvalidRange},
      {"304", "304 N\r\nx-amz-checksum-crc32: AAAAAA==\r\n\r\n", ErrorCode::kPreconditionFailed},
  };
  for (const auto& odd : cases) {
    Scripted s([&](TinyConnection& c, const TinyRequest&) {
      c.send("HTTP/1.1 " + odd.answer);
      c.close();
    });
    StringSink sink;
    auto info = s.store().get_range({}, "k", kEtag, 10, {2, 3}, sink);
    ASSERT_FALSE(info) << odd.why;
    EXPECT_EQ(info.error().code(), odd.expected) << odd.why << ": " << info.error().describe();
    EXPECT_TRUE(std::string("234").starts_with(sink.text)) << odd.why << " delivered " << sink.text;
    EXPECT_EQ(s.server.requests().size(), 1U) << odd.why;
  }
}

TEST(S3Get, WholeRangeMayBeAnsweredWith200AndChunked) {
  Scripted s([](TinyConnection& c, const TinyRequest&) {
    c.send("HTTP/1.1 200 OK\r\n" + etag_header() + "Transfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n");
  });
  StringSink sink;
  ASSERT_TRUE(s.store().get_range({}, "k", kEtag, 10, {0, 10}, sink));
  EXPECT_EQ(sink.text, kBody);
}

TEST(S3Get, UnquotedEtagsAreTheSameVersion) {
  Scripted s([](TinyConnection& c, const TinyRequest&) { c.answer(200, "ETag: abc\r\n", kBody); });
  StringSink sink;
  auto info = s.store().get_range({}, "k", "\"abc\"", 10, {0, 10}, sink);
  ASSERT_TRUE(info) << info.error().describe();
  EXPECT_EQ(info->etag, "\"abc\"");
}

TEST(S3Get, EmptyObjectsAndEmptyRanges) {
  Scripted s([](TinyConnection& c, const TinyRequest&) { c.answer(200, etag_header(), ""); });
  StringSink sink;
  ASSERT_TRUE(s.store().get_range({}, "k", kEtag, 0, {0, 0}, sink));
  EXPECT_FALSE(s.server.requests().at(0).has("range"));
  ASSERT_TRUE(s.store().get_range({}, "k", kEtag, 10, {5, 0}, sink));
  EXPECT_EQ(s.server.requests().size(), 1U);  // nothing to ask for
  EXPECT_EQ(s.store().get_range({}, "k", kEtag, 10, {5, 6}, sink).error().code(), ErrorCode::kInvalidRange);
  EXPECT_EQ(s.store().get_range({}, "k", kEtag, 10, {UINT64_MAX, 2}, sink).error().code(), ErrorCode::kInvalidRange);
  EXPECT_EQ(s.store().get_range({}, "", kEtag, 10, {0, 1}, sink).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(s.store().get_range({}, std::string(1025, 'k'), kEtag, 10, {0, 1}, sink).error().code(), ErrorCode::kNameTooLong);
}

TEST(S3Get, SinkErrorIsTheAnswer) {
  Scripted s([](TinyConnection& c, const TinyRequest& r) { serve_body(c, r); });
  StringSink sink;
  sink.fail_at = 1;
  auto info = s.store().get_range({}, "k", kEtag, 10, {2, 3}, sink);
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().code(), ErrorCode::kNoSpace);
}

TEST(S3Get, LargeBodiesAreNotKeptBack) {
  const std::string big((9U << 20U), 'b');
  Scripted s([&](TinyConnection& c, const TinyRequest& r) {
    EXPECT_TRUE(r.has("range"));
    c.answer(
        206,
        etag_header() + "Content-Range: bytes 0-" + std::to_string(big.size() - 1) + "/" + std::to_string(big.size()) + "\r\n",
        big);
  });
  StringSink sink;
  ASSERT_TRUE(s.store().get_range({}, "k", kEtag, big.size(), {0, big.size()}, sink));
  EXPECT_TRUE(sink.text == big);
  EXPECT_GT(sink.pieces, 1U);
}

TEST(S3Head, AllThatTheHeadersSay) {
  Scripted s([](TinyConnection& c, const TinyRequest&) {
    c.send(
        "HTTP/1.1 200 OK\r\nContent-Length: 77\r\nETag: \"e\"\r\nLast-Modified: Mon, 30 Nov 2026 22:02:38 GMT\r\nContent-Type: "
        "text/csv\r\n"
        "X-Amz-Meta-Mode: 33188\r\nx-amz-storage-class: GLACIER\r\n\r\n");
  });
  auto info = s.store().head({}, "k");
  ASSERT_TRUE(info) << info.error().describe();
  EXPECT_EQ(info->key, "k");
  EXPECT_EQ(info->size, 77U);
  EXPECT_EQ(info->etag, "\"e\"");
  EXPECT_EQ(info->mtime, 1796076158000000000);
  EXPECT_EQ(info->content_type, "text/csv");
  EXPECT_EQ(info->storage_class, "GLACIER");
  EXPECT_EQ(info->metadata, (std::map<std::string, std::string>{{"mode", "33188"}}));
}

TEST(S3Head, ErrorsAreToldByTheStatusAlone) {
  const std::vector<std::pair<int, ErrorCode>> table = {{404, ErrorCode::kNotFound},           {403, ErrorCode::kAccessDenied},
                                                        {412, ErrorCode::kPreconditionFailed}, {429, ErrorCode::kThrottled},
                                                        {500, ErrorCode::kUnavailable},        {502, ErrorCode::kUnavailable},
                                                        {503, ErrorCode::kThrottled},          {504, ErrorCode::kUnavailable},
                                                        {400, ErrorCode::kInvalidArgument},    {409, ErrorCode::kConflict}};
  for (const auto& [status, code] : table) {
    Scripted s([status = status](TinyConnection& c, const TinyRequest&) {
      c.send("HTTP/1.1 " + std::to_string(status) +
             " X\r\nContent-Length: 300\r\nRetry-After: 7\r\nx-amz-request-id: RQ\r\n\r\n");
    });
    auto info = s.store().head({}, "some key");
    ASSERT_FALSE(info) << status;
    EXPECT_EQ(info.error().code(), code) << status;
    EXPECT_EQ(info.error().http_status(), status);
    EXPECT_EQ(info.error().retry_after_ms(), 7000U);
    EXPECT_NE(info.error().message().find("some key"), std::string::npos);
    EXPECT_NE(info.error().message().find("RQ"), std::string::npos);
  }
  Scripted other([](TinyConnection& c, const TinyRequest&) { c.send("HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n"); });
  EXPECT_EQ(other.store().head({}, "k").error().code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace thermo::store
