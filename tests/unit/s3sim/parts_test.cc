// The small parts: pacing, framings, digests, XML, and what an upstream says.

#include <gtest/gtest.h>

#include <thread>

#include "s3sim/aws_chunked.h"
#include "s3sim/checksum.h"
#include "s3sim/pacer.h"
#include "s3sim/request.h"
#include "s3sim/uploads.h"
#include "s3sim/upstream.h"
#include "s3sim/xml.h"

namespace thermo::s3sim {
namespace {

using std::chrono::milliseconds;

TEST(Pacer, KeepsTheScheduleThoughTheSleeperIsLate) {
  Pacer pacer;
  MonoTime now{};
  now += std::chrono::hours(1);
  const MonoTime begin = now;
  pacer.begin(now);
  std::uint64_t bytes = 0;
  while (bytes < 90'000'000) {
    const MonoTime until = pacer.book(now, 225'000, 90'000'000);
    bytes += 225'000;
    now = std::max(now, until) + milliseconds(1);  // each sleep is 1 ms too long
  }
  const double seconds = std::chrono::duration<double>(now - begin).count();
  EXPECT_NEAR(seconds, 1.0, 0.005);
}

TEST(Pacer, SilenceEarnsAtMostTheSlack) {
  Pacer pacer;
  MonoTime now{};
  now += std::chrono::hours(1);
  pacer.begin(now);
  (void)pacer.book(now, 1000, 1000);
  now += std::chrono::hours(1);
  EXPECT_EQ(pacer.book(now, 1000, 1000), now - Pacer::kSlack + std::chrono::seconds(1));
  now += std::chrono::hours(1);
  pacer.begin(now);
  EXPECT_EQ(pacer.book(now, 500, 1000), now + milliseconds(500)) << "a new body starts from now";
}

TEST(Pacer, StepsAreBounded) {
  EXPECT_EQ(Pacer::step(1), 16U * 1024);
  EXPECT_EQ(Pacer::step(90'000'000), 225'000U);
  EXPECT_EQ(Pacer::step(10'000'000'000), 256U * 1024);
}

TEST(Stopper, EndsALongSleep) {
  Stopper stopper;
  const auto begin = Clock::system().now();
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(50));
    stopper.stop();
  });
  EXPECT_FALSE(stopper.sleep_until(begin + std::chrono::seconds(30)));
  EXPECT_LT(Clock::system().now() - begin, std::chrono::seconds(5));
  other.join();
  EXPECT_FALSE(stopper.sleep_until(begin));
}

TEST(AwsChunked, SignedUnsignedAndTrailers) {
  const auto signed_body =
      decode_aws_chunked("5;chunk-signature=ab\r\nhello\r\n1;chunk-signature=cd\r\n!\r\n0;chunk-signature=ef\r\n\r\n");
  ASSERT_TRUE(signed_body);
  EXPECT_EQ(signed_body->data, "hello!");
  EXPECT_TRUE(signed_body->trailers.empty());
  const auto trailer = decode_aws_chunked("3\r\na\r\n\r\n0\r\nX-Amz-Checksum-Crc32: AAAA\r\nx-amz-trailer-signature:00\r\n\r\n");
  ASSERT_TRUE(trailer);
  EXPECT_EQ(trailer->data, "a\r\n") << "line breaks of the data are data";
  EXPECT_EQ(trailer->trailers, (Headers{{"x-amz-checksum-crc32", "AAAA"}}));
  EXPECT_EQ(decode_aws_chunked("0\r\nx-amz-checksum-crc32c:AAAAAA==\r\n\r\n")->data, "") << "an empty object with a trailer";
}

TEST(AwsChunked, EveryTruncationIsAnError) {
  const std::string whole = "5;chunk-signature=ab\r\nhello\r\n0\r\n";
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(decode_aws_chunked(whole.substr(0, n))) << n;
  EXPECT_TRUE(decode_aws_chunked(whole));
  for (const auto* bad : {"x\r\n", "-1\r\n", "\r\n", "5\r\nhelloXX0\r\n", "ffffffffffffffff\r\nab", "10000000000000000\r\n"})
    EXPECT_FALSE(decode_aws_chunked(bad)) << bad;
}

TEST(Checksum, KnownAnswers) {
  EXPECT_EQ(hex(*checksum("crc32", "123456789")), "cbf43926");
  EXPECT_EQ(hex(*checksum("crc32c", "123456789")), "e3069283");
  EXPECT_EQ(hex(*checksum("crc64nvme", "123456789")), "ae8b14860a799888");
  EXPECT_EQ(hex(*checksum("sha1", "abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(hex(*checksum("sha256", "")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(md5("")), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_FALSE(checksum("crc16", ""));
  EXPECT_EQ(base64("\xff\xff\xff\xff"), "/////w==");
  EXPECT_EQ(base64(""), "");
}

TEST(Xml, EscapesAndReads) {
  EXPECT_EQ(xml_escape("Net & Works<>\"'\x01\n"), "Net &amp; Works&lt;&gt;&quot;'&#x1;&#xa;");
  const std::string document =
      "<D xmlns=\"x\"><Object a='1'><Key>a&amp;b&#xA;&#101;</Key></Object><Object/><s:Object><Key>z</Key></s:Object></D>";
  const auto objects = xml_inner(document, "Object");
  ASSERT_EQ(objects.size(), 3U);
  EXPECT_EQ(*xml_text(objects[0], "Key"), "a&b\ne");
  EXPECT_FALSE(xml_text(objects[1], "Key"));
  EXPECT_EQ(*xml_text(objects[2], "Key"), "z");
  EXPECT_EQ(*xml_text("<K>&bogus;&#x110000;&amp</K>", "K"), "&bogus;&#x110000;&amp");
  EXPECT_EQ(*xml_text("<K>\xC3\xA9&#233;&#x20AC;&#x1F600;</K>", "K"), "\xC3\xA9\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  for (const auto* broken : {"<K", "<K>", "<K>a</", "</K>", "<", ""}) EXPECT_FALSE(xml_text(broken, "K")) << broken;
}

S3Request parse(std::string method, std::string target, std::vector<Header> headers = {}) {
  net::ServerRequest request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.headers = std::move(headers);
  auto parsed = parse_s3_request(request, [](const std::string& bucket) { return bucket == "known" || bucket == "10"; });
  EXPECT_TRUE(parsed) << request.target;
  return parsed.value_or(S3Request{});
}

TEST(Request, BucketsKeysAndStyles) {
  EXPECT_EQ(parse("GET", "/b/dt%3D1/a%20b%2Bc+%2F%2f//x").key, "dt=1/a b+c+////x");
  EXPECT_EQ(parse("GET", "/known/k", {{"host", "127.0.0.1:9000"}}).bucket, "known");
  const auto virtual_style = parse("GET", "/k/l?x=a+b", {{"host", "known.s3.example:9000"}});
  EXPECT_EQ(virtual_style.bucket, "known");
  EXPECT_EQ(virtual_style.key, "k/l");
  EXPECT_EQ(*virtual_style.param("x"), "a b");
  EXPECT_EQ(parse("GET", "/b/k", {{"host", "10.0.0.1"}}).bucket, "b") << "an address is no bucket";
  EXPECT_EQ(parse("GET", "/b/k", {{"host", "localhost:1"}}).bucket, "b");
  EXPECT_EQ(parse("GET", "http://h:1/b/k?x").key, "k");
}

TEST(Request, Operations) {
  EXPECT_EQ(parse("GET", "/").op, Op::kListBuckets);
  EXPECT_EQ(parse("GET", "/b").op, Op::kList);
  EXPECT_EQ(parse("GET", "/b/?list-type=2").op, Op::kList);
  EXPECT_EQ(parse("GET", "/b?location").op, Op::kBucketInfo);
  EXPECT_EQ(parse("HEAD", "/b").op, Op::kHeadBucket);
  EXPECT_EQ(parse("HEAD", "/b/k/").op, Op::kHead);
  EXPECT_EQ(parse("PUT", "/b/k?x-id=PutObject").op, Op::kPut);
  EXPECT_EQ(parse("PUT", "/b/k", {{"x-amz-copy-source", "b/x"}}).op, Op::kCopy);
  EXPECT_EQ(parse("PUT", "/b/k?partNumber=1&uploadId=u").op, Op::kPart);
  EXPECT_EQ(parse("POST", "/b?delete=").op, Op::kDeleteMany);
  EXPECT_EQ(parse("POST", "/b/k?uploads").op, Op::kCreateUpload);
  EXPECT_EQ(parse("GET", "/b/k?tagging").op, Op::kUnsupported) << "a sub-resource is never the object";
  EXPECT_EQ(parse("PATCH", "/b/k").op, Op::kUnsupported);
  net::ServerRequest broken;
  broken.method = "GET";
  for (const auto* target : {"b/k", "/b/%zz", "/b?x=%4", "*"}) {
    broken.target = target;
    EXPECT_FALSE(parse_s3_request(broken, [](const std::string&) { return false; })) << target;
  }
}

TEST(Upstream, ResponseHeads) {
  const auto head =
      parse_response_head("HTTP/1.1 206 Partial Content\r\nETag: \"x\"\r\nContent-Length: 12\r\nConnection: close\r\nX:\r\n\r\n");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 206);
  EXPECT_EQ(head->length, 12);
  EXPECT_FALSE(head->keep_alive);
  EXPECT_EQ(head->headers, (Headers{{"ETag", "\"x\""}, {"X", ""}}));
  EXPECT_TRUE(parse_response_head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n")->chunked);
  EXPECT_FALSE(parse_response_head("HTTP/1.0 200 OK\r\n\r\n")->keep_alive);
  for (const auto* bad : {"", "SSH-2.0\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\nnocolon\r\n\r\n",
                          "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"})
    EXPECT_FALSE(parse_response_head(bad)) << bad;
  for (const auto* bad : {"https://h", "127.0.0.1:1", "http://", "http://h/path", ""}) EXPECT_FALSE(parse_upstream(bad)) << bad;
}

TEST(Upstream, ChunkScannerFindsTheEndHoweverItIsCut) {
  const std::string body = "5;x=y\r\nhello\r\nA\r\n0\r\n\r\n01234\r\n0\r\nTrailer: v\r\n\r\n";
  const std::string wire = body + "HTTP/1.1 next";
  for (std::size_t piece = 1; piece <= wire.size(); ++piece) {
    ChunkScanner scanner;
    std::size_t used = 0;
    for (std::size_t at = 0; at < wire.size() && !scanner.done(); at += piece) {
      used += scanner.feed(std::as_bytes(std::span(wire)).subspan(at, std::min(piece, wire.size() - at)));
    }
    EXPECT_TRUE(scanner.done());
    EXPECT_EQ(used, body.size()) << "pieces of " << piece;
  }
}

Part part_of(std::string data) {
  Part part;
  part.md5 = md5(data);
  part.data = std::make_shared<const std::string>(std::move(data));
  return part;
}

TEST(Uploads, JoinChecksPartsAndDigests) {
  Upload upload;
  upload.parts[1] = part_of(std::string(5 << 20, 'a'));
  upload.parts[2] = part_of("end");
  const std::string one = hex(upload.parts[1].md5), two = "\"" + hex(upload.parts[2].md5) + "\"";
  upload.algorithm = "crc32c";
  upload.checksum_type = "FULL_OBJECT";
  auto whole = join_parts(upload, {{1, one}, {2, two}});
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->data->size(), (5U << 20) + 3);
  EXPECT_EQ(whole->etag, "\"" + hex(md5(upload.parts[1].md5 + upload.parts[2].md5)) + "-2\"");
  EXPECT_EQ(whole->checksums.front().second, base64(*checksum("crc32c", *whole->data)));
  upload.checksum_type = "COMPOSITE";
  EXPECT_TRUE(join_parts(upload, {{1, one}, {2, two}})->checksums.front().second.ends_with("-2"));
  EXPECT_EQ(join_parts(upload, {{2, two}, {1, one}}).error().code, "InvalidPartOrder");
  EXPECT_EQ(join_parts(upload, {{1, one}, {3, two}}).error().code, "InvalidPart");
  EXPECT_EQ(join_parts(upload, {{1, two}}).error().code, "InvalidPart");
  EXPECT_EQ(join_parts(upload, {}).error().code, "MalformedXML");
  upload.parts[1] = part_of("short");
  EXPECT_EQ(join_parts(upload, {{1, hex(upload.parts[1].md5)}, {2, two}}).error().code, "EntityTooSmall");
}

}  // namespace
}  // namespace thermo::s3sim
