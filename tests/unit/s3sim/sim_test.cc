// Memory and folder mode through the wire: what S3 answers, byte for byte where clients depend on it.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "net/sigv4.h"
#include "s3sim/checksum.h"
#include "sim_fixture.h"

namespace thermo::s3sim {
namespace {

TEST(Sim, ObjectsComeBackAsTheyWent) {
  Sim sim;
  EXPECT_EQ(sim.put("/b").status, 200);
  EXPECT_EQ(sim.put("/b").status, 409);
  const auto put = sim.put(
      "/b/k%2Fx", "hello",
      "Content-Type: text/plain\r\nX-Amz-Meta-Who: me\r\nCache-Control: no-cache\r\nContent-Encoding: aws-chunked,gzip\r\n");
  EXPECT_EQ(put.status, 200);
  EXPECT_EQ(put.header("etag"), "\"5d41402abc4b2a76b9719d911017c592\"");
  for (const std::string method : {"GET", "HEAD"}) {
    const auto got = sim.client->request(method, "/b/k/x");
    EXPECT_EQ(got.status, 200);
    EXPECT_EQ(got.body, method == "GET" ? "hello" : "");
    EXPECT_EQ(got.header("content-length"), "5");
    EXPECT_EQ(got.header("content-type"), "text/plain");
    EXPECT_EQ(got.header("x-amz-meta-who"), "me");
    EXPECT_EQ(got.header("cache-control"), "no-cache");
    EXPECT_EQ(got.header("content-encoding"), "gzip");
    EXPECT_EQ(got.header("etag"), put.header("etag"));
    EXPECT_NE(got.header("date"), "");
    EXPECT_NE(got.header("x-amz-request-id"), "");
  }
  EXPECT_EQ(sim.client->request("DELETE", "/b/k/x").status, 204);
  EXPECT_EQ(sim.client->request("DELETE", "/b/k/x").status, 204) << "what is not there counts as removed";
  const auto gone = sim.get("/b/k/x");
  EXPECT_EQ(gone.status, 404);
  EXPECT_EQ(xml_value(gone.body, "Code"), "NoSuchKey");
  EXPECT_EQ(xml_value(gone.body, "Resource"), "/b/k/x");
  EXPECT_EQ(xml_value(gone.body, "RequestId"), gone.header("x-amz-request-id"));
  EXPECT_EQ(xml_value(sim.get("/none/k").body, "Code"), "NoSuchBucket");
  EXPECT_EQ(sim.client->request("HEAD", "/none").status, 404);
  EXPECT_EQ(sim.get("/b/k?tagging").status, 501);
}

TEST(Sim, RangesAndConditionals) {
  Sim sim;
  sim.put("/b");
  const std::string etag = sim.put("/b/k", "0123456789").header("etag");
  sim.put("/b/empty", "");
  const auto part = sim.get("/b/k", "Range: bytes=2-4\r\n");
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, "234");
  EXPECT_EQ(part.header("content-range"), "bytes 2-4/10");
  EXPECT_EQ(sim.get("/b/k", "Range: bytes=-3\r\n").body, "789");
  const auto head = sim.client->request("HEAD", "/b/k", "Range: bytes=2-4\r\n");
  EXPECT_EQ(head.status, 206);
  EXPECT_EQ(head.header("content-length"), "3");
  const auto past = sim.get("/b/k", "Range: bytes=10-\r\n");
  EXPECT_EQ(past.status, 416);
  EXPECT_EQ(past.header("content-range"), "bytes */10");
  EXPECT_EQ(sim.get("/b/empty", "Range: bytes=0-0\r\n").status, 416);
  EXPECT_EQ(sim.get("/b/empty", "Range: bytes=0-0\r\n").header("content-range"), "bytes */0");
  const auto suffix = sim.get("/b/empty", "Range: bytes=-5\r\n");
  EXPECT_EQ(suffix.status, 200);
  EXPECT_EQ(suffix.header("content-length"), "0");
  EXPECT_EQ(sim.get("/b/k", "If-Match: " + etag + "\r\nRange: bytes=0-0\r\n").status, 206);
  EXPECT_EQ(sim.get("/b/k", "If-Match: \"other\"\r\n").status, 412);
  const auto same = sim.get("/b/k", "If-None-Match: " + etag + "\r\n");
  EXPECT_EQ(same.status, 304);
  EXPECT_EQ(same.header("etag"), etag);
  EXPECT_EQ(sim.put("/b/k", "x", "If-None-Match: *\r\n").status, 412);
  EXPECT_EQ(sim.put("/b/new", "x", "If-Match: \"e\"\r\n").status, 404);
  EXPECT_EQ(sim.put("/b/k", "x", "If-Match: \"e\"\r\n").status, 412);
  EXPECT_EQ(sim.put("/b/k", "x", "If-Match: " + etag + "\r\n").status, 200);
  EXPECT_EQ(sim.put("/b/k", "x", "If-None-Match: \"e\"\r\n").status, 501);
}

TEST(Sim, OneOfRacingCreatorsWins) {
  Sim sim;
  sim.put("/b");
  std::atomic<int> created{0}, refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&] {
      test::RawClient client(sim.server->port());
      const int status = client.request("PUT", "/b/k", "If-None-Match: *\r\n", "x").status;
      (status == 200 ? created : refused) += status == 200 || status == 412;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(created, 1);
  EXPECT_EQ(refused, 19);
}

TEST(Sim, ChecksumsAreCheckedKeptAndReturnedOnWholeAnswersOnly) {
  Sim sim;
  sim.put("/b");
  const std::string crc = base64(*checksum("crc32c", "data"));
  EXPECT_EQ(sim.put("/b/k", "data", "x-amz-checksum-crc32c: " + crc + "\r\n").status, 200);
  EXPECT_EQ(xml_value(sim.put("/b/bad", "datA", "x-amz-checksum-crc32c: " + crc + "\r\n").body, "Code"), "BadDigest");
  EXPECT_EQ(xml_value(sim.put("/b/bad", "datA", "Content-MD5: " + base64(md5("data")) + "\r\n").body, "Code"), "BadDigest");
  EXPECT_EQ(
      xml_value(sim.put("/b/bad", "datA", "x-amz-content-sha256: " + hex(*checksum("sha256", "data")) + "\r\n").body, "Code"),
      "XAmzContentSHA256Mismatch");
  EXPECT_EQ(sim.client->request("HEAD", "/b/bad").status, 404) << "what was refused is not there";
  const std::string mode = "x-amz-checksum-mode: ENABLED\r\n";
  EXPECT_EQ(sim.get("/b/k", mode).header("x-amz-checksum-crc32c"), crc);
  EXPECT_EQ(sim.get("/b/k", mode).header("x-amz-checksum-type"), "FULL_OBJECT");
  EXPECT_EQ(sim.client->request("HEAD", "/b/k", mode).header("x-amz-checksum-crc32c"), crc);
  EXPECT_EQ(sim.get("/b/k").header("x-amz-checksum-crc32c"), "");
  EXPECT_EQ(sim.get("/b/k", mode + "Range: bytes=0-1\r\n").header("x-amz-checksum-crc32c"), "") << "206";
  EXPECT_EQ(sim.get("/b/k", mode + "If-None-Match: *\r\n").header("x-amz-checksum-crc32c"), "") << "304";
}

TEST(Sim, AwsChunkedUploads) {
  Sim sim;
  sim.put("/b");
  const std::string crc = base64(*checksum("crc32", "hello"));
  const std::string body = "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:" + crc + "\r\n\r\n";
  const std::string headers =
      "x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER\r\nx-amz-decoded-content-length: 5\r\nContent-Encoding: "
      "aws-chunked\r\n";
  EXPECT_EQ(sim.put("/b/k", body, headers).status, 200);
  const auto got = sim.get("/b/k", "x-amz-checksum-mode: ENABLED\r\n");
  EXPECT_EQ(got.body, "hello");
  EXPECT_EQ(got.header("x-amz-checksum-crc32"), crc);
  EXPECT_EQ(got.header("content-encoding"), "");
  // Chunked twice: the transfer coding outside, aws-chunked inside.
  sim.client->send(
      fmt::format("PUT /b/twice HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n{}\r\n{:x}\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n",
                  headers, 7, body.substr(0, 7), body.size() - 7, body.substr(7)));
  EXPECT_EQ(sim.client->receive().status, 200);
  EXPECT_EQ(sim.get("/b/twice").body, "hello");
  EXPECT_EQ(xml_value(sim.put("/b/x", "5\r\nhellO\r\n0\r\nx-amz-checksum-crc32:" + crc + "\r\n\r\n", headers).body, "Code"),
            "BadDigest");
  EXPECT_EQ(xml_value(sim.put("/b/x", "5\r\nhel", headers).body, "Code"), "IncompleteBody");
}

TEST(Sim, ListingsAsS3WritesThem) {
  Sim sim;
  sim.put("/b");
  for (const auto* key : {"a", "a/", "a//b", "a%0Ab", "%01", "Net%20&%20Works%3C%3E%22%27", "q!c", "q/x"})
    EXPECT_EQ(sim.put(std::string("/b/") + key, "v").status, 200);
  const auto first = sim.get("/b?list-type=2&delimiter=/&max-keys=3&encoding-type=url");
  EXPECT_EQ(first.body.substr(0, first.body.find("<Contents>")),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult "
            "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name><Prefix></Prefix>"
            "<KeyCount>3</KeyCount><MaxKeys>3</MaxKeys><Delimiter>/</Delimiter><EncodingType>url</"
            "EncodingType><IsTruncated>true</IsTruncated>"
            "<NextContinuationToken>" +
                xml_value(first.body, "NextContinuationToken") + "</NextContinuationToken>");
  EXPECT_NE(first.body.find("<Key>%01</Key>"), std::string::npos);
  EXPECT_NE(first.body.find("<Key>Net+%26+Works%3C%3E%22%27</Key>"), std::string::npos);
  EXPECT_NE(first.body.find(
                "<ETag>&quot;9e3669d19b675bd57058fd4664205d2a&quot;</ETag><Size>1</Size><StorageClass>STANDARD</StorageClass>"),
            std::string::npos);
  const auto rest = sim.get("/b?list-type=2&delimiter=/&encoding-type=url&continuation-token=" +
                            xml_value(first.body, "NextContinuationToken"));
  EXPECT_EQ(xml_value(rest.body, "KeyCount"), "4");
  EXPECT_NE(rest.body.find("<Key>a%0Ab</Key>"), std::string::npos);
  EXPECT_NE(
      rest.body.find("<CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes><CommonPrefixes><Prefix>q/</Prefix></CommonPrefixes>"),
      std::string::npos);
  const auto raw = sim.get("/b?list-type=2");
  EXPECT_NE(raw.body.find("<Key>&#x1;</Key>"), std::string::npos);
  EXPECT_NE(raw.body.find("<Key>Net &amp; Works&lt;&gt;&quot;'</Key>"), std::string::npos);
  EXPECT_EQ(raw.body.find("ContinuationToken"), std::string::npos) << "no empty element";
  const auto none = sim.get("/b?list-type=2&prefix=none/&delimiter=/&max-keys=2");
  EXPECT_EQ(none.status, 200);
  EXPECT_EQ(xml_value(none.body, "KeyCount"), "0");
  EXPECT_EQ(xml_value(sim.get("/b?list-type=2&max-keys=0").body, "IsTruncated"), "false");
  EXPECT_EQ(xml_value(sim.get("/b?list-type=2&max-keys=5000").body, "MaxKeys"), "1000") << "clamped, not refused";
  EXPECT_NE(sim.get("/b?list-type=2&fetch-owner=true").body.find("<Owner>"), std::string::npos);
  EXPECT_EQ(raw.body.find("<Owner>"), std::string::npos);
  for (const auto* bad : {"max-keys=-1", "max-keys=x", "list-type=2&continuation-token=", "list-type=2&continuation-token=zz",
                          "encoding-type=xml"}) {
    EXPECT_EQ(xml_value(sim.get(std::string("/b?") + bad).body, "Code"), "InvalidArgument") << bad;
  }
  const auto v1 = sim.get("/b?delimiter=/&max-keys=4&encoding-type=url");
  EXPECT_EQ(xml_value(v1.body, "NextMarker"), "a%0Ab");
  EXPECT_EQ(xml_value(sim.get("/b?max-keys=2").body, "NextMarker"), "") << "without a delimiter the last key is the marker";
  EXPECT_EQ(xml_value(sim.get("/b?delimiter=/&marker=a/").body, "Key"), "q!c") << "a marker that is a prefix is not shown again";
}

TEST(Sim, DeleteManyAndMultipart) {
  Sim sim;
  sim.put("/b");
  sim.put("/b/a%0Ab", "1");
  sim.put("/b/c", "1");
  const std::string body = "<Delete><Object><Key>a&#10;b</Key></Object><Object><Key>none</Key></Object></Delete>";
  EXPECT_EQ(sim.client->request("POST", "/b?delete", "", body).status, 400) << "a digest is required";
  const auto deleted = sim.client->request("POST", "/b?delete", "Content-MD5: " + base64(md5(body)) + "\r\n", body);
  EXPECT_NE(deleted.body.find("<Deleted><Key>a&#xa;b</Key></Deleted><Deleted><Key>none</Key></Deleted>"), std::string::npos);
  EXPECT_EQ(sim.get("/b/a%0Ab").status, 404);

  const std::string id = xml_value(sim.client->request("POST", "/b/big?uploads", "x-amz-meta-m: v\r\n").body, "UploadId");
  const std::string part(5 << 20, 'p');
  const std::string one = sim.put("/b/big?partNumber=1&uploadId=" + id, part).header("etag");
  sim.put("/b/src", "0123456789");
  const auto copied =
      sim.put("/b/big?partNumber=2&uploadId=" + id, "", "x-amz-copy-source: /b/src\r\nx-amz-copy-source-range: bytes=3-5\r\n");
  EXPECT_EQ(sim.get("/b/big").status, 404) << "not there before it is complete";
  EXPECT_NE(sim.get("/b/big?uploadId=" + id).body.find("<PartNumber>2</PartNumber>"), std::string::npos);
  EXPECT_NE(sim.get("/b?uploads").body.find(id), std::string::npos);
  const std::string list = "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>" + one +
                           "</ETag></Part><Part><ETag>" + xml_value(copied.body, "ETag") +
                           "</ETag><PartNumber>2</PartNumber></Part></CompleteMultipartUpload>";
  const auto complete = sim.client->request("POST", "/b/big?uploadId=" + id, "", list);
  EXPECT_EQ(complete.status, 200) << complete.body;
  EXPECT_TRUE(xml_value(complete.body, "ETag").ends_with("-2&quot;"));
  EXPECT_EQ(sim.get("/b/big").body, part + "345");
  EXPECT_EQ(sim.get("/b/big", "Range: bytes=0-0\r\n").header("x-amz-meta-m"), "v");
  EXPECT_EQ(xml_value(sim.client->request("POST", "/b/big?uploadId=" + id, "", list).body, "Code"), "NoSuchUpload");
  EXPECT_EQ(sim.client->request("DELETE", "/b/big?uploadId=" + id).status, 404);
  EXPECT_EQ(sim.put("/b/big?partNumber=0&uploadId=" + id, "x").status, 400);
}

TEST(Sim, Copy) {
  Sim sim;
  sim.put("/b");
  const std::string etag = sim.put("/b/a%20b+c%25%C3%A9", "v", "x-amz-meta-m: old\r\n").header("etag");
  EXPECT_EQ(sim.put("/b/copy", "", "x-amz-copy-source: b/a%20b+c%25%C3%A9\r\n").status, 200);
  EXPECT_EQ(sim.get("/b/copy").header("x-amz-meta-m"), "old");
  EXPECT_EQ(sim.put("/b/copy", "",
                    "x-amz-copy-source: b/a%20b+c%25%C3%A9\r\nx-amz-metadata-directive: REPLACE\r\nx-amz-meta-m: new\r\n")
                .status,
            200);
  EXPECT_EQ(sim.get("/b/copy").header("x-amz-meta-m"), "new");
  EXPECT_EQ(sim.put("/b/copy", "", "x-amz-copy-source: b/copy\r\nx-amz-copy-source-if-match: \"x\"\r\n").status, 412);
  EXPECT_EQ(sim.put("/b/copy", "", "x-amz-copy-source: b/none\r\n").status, 404);
  EXPECT_EQ(sim.put("/b/copy", "", "x-amz-copy-source: b\r\n").status, 400);
}

std::string signed_headers(const std::string& method, const std::string& path, net::AccessKey key, const std::string& region,
                           WallNanos now) {
  net::SigningInput input;
  input.method = method;
  input.encoded_path = path;
  input.payload_hash = net::kUnsignedPayload;
  input.region = region;
  input.amz_date = net::amz_date(now);
  input.headers = {{"host", "127.0.0.1"}, {"x-amz-content-sha256", input.payload_hash}, {"x-amz-date", input.amz_date}};
  return "x-amz-content-sha256: " + input.payload_hash + "\r\nx-amz-date: " + input.amz_date +
         "\r\nAuthorization: " + net::authorization(input, key) + "\r\n";
}

TEST(Sim, Signatures) {
  Options options;
  options.check_signatures = true;
  options.region = "eu-west-1";
  EXPECT_FALSE(start(options)) << "no key to check against";
  options.keys["id"] = "secret";
  Sim sim(options);
  const auto now = [] { return Clock::system().wall(); };
  const auto code = [&](const std::string& headers) { return xml_value(sim.get("/", headers).body, "Code"); };
  EXPECT_EQ(sim.get("/", signed_headers("GET", "/", {"id", "secret", ""}, "eu-west-1", now())).status, 200);
  EXPECT_EQ(code(""), "AccessDenied");
  EXPECT_EQ(code(signed_headers("GET", "/", {"id", "wrong", ""}, "eu-west-1", now())), "SignatureDoesNotMatch");
  EXPECT_EQ(code(signed_headers("HEAD", "/", {"id", "secret", ""}, "eu-west-1", now())), "SignatureDoesNotMatch");
  EXPECT_EQ(code(signed_headers("GET", "/", {"who", "secret", ""}, "eu-west-1", now())), "InvalidAccessKeyId");
  const auto elsewhere = sim.get("/", signed_headers("GET", "/", {"id", "secret", ""}, "us-east-1", now()));
  EXPECT_EQ(elsewhere.status, 400);
  EXPECT_EQ(xml_value(elsewhere.body, "Code"), "AuthorizationHeaderMalformed");
  EXPECT_EQ(xml_value(elsewhere.body, "Region"), "eu-west-1");
  EXPECT_EQ(elsewhere.header("x-amz-bucket-region"), "eu-west-1");
  sim.options(R"({"clock_offset_s": 1200})");
  const auto skewed = sim.get("/", signed_headers("GET", "/", {"id", "secret", ""}, "eu-west-1", now()));
  EXPECT_EQ(skewed.status, 403);
  EXPECT_EQ(xml_value(skewed.body, "Code"), "RequestTimeTooSkewed");
  EXPECT_EQ(sim.get("/", signed_headers("GET", "/", {"id", "secret", ""}, "eu-west-1", now() + 1200'000'000'000)).status, 200);
}

class FolderSim : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/thermo-s3sim-XXXXXX";
    root_ = ::mkdtemp(name);
    for (const auto* file : {"b/q!c", "b/q-a", "b/q/x", "b/q/deep/y", "b/q0", "b/top", "other/z"}) {
      std::filesystem::create_directories((root_ / file).parent_path());
      std::ofstream(root_ / file) << file;
    }
    std::filesystem::create_directories(root_ / "b/empty/inside");
    Options options;
    options.mode = Options::Mode::kFolder;
    options.folder = root_;
    sim_ = std::make_unique<Sim>(options);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::vector<std::string> list(const std::string& query) {
    std::vector<std::string> out;
    const std::string body = sim_->get("/b?list-type=2&" + query).body;
    for (std::size_t at = 0; (at = body.find("<Key>", at)) != std::string::npos; ++at)
      out.push_back(body.substr(at + 5, body.find('<', at + 5) - at - 5));
    for (std::size_t at = body.find("<Contents>"); (at = body.find("<CommonPrefixes><Prefix>", at)) != std::string::npos; ++at)
      out.push_back(body.substr(at + 24, body.find('<', at + 24) - at - 24));
    return out;
  }

  std::filesystem::path root_;
  std::unique_ptr<Sim> sim_;
};

TEST_F(FolderSim, ListsInS3Order) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(list(""), (Names{"q!c", "q-a", "q/deep/y", "q/x", "q0", "top"}));
  EXPECT_EQ(list("delimiter=/"), (Names{"q!c", "q-a", "q0", "top", "q/"})) << "an empty folder holds no key";
  EXPECT_EQ(list("prefix=q/&delimiter=/"), (Names{"q/x", "q/deep/"}));
  EXPECT_EQ(list("start-after=q/deep/y"), (Names{"q/x", "q0", "top"}));
  EXPECT_EQ(list("prefix=q/d"), (Names{"q/deep/y"}));
  for (int max = 1; max < 7; ++max) {
    Names all;
    std::string token;
    do {
      const std::string body = sim_->get(fmt::format("/b?list-type=2&max-keys={}{}", max, token)).body;
      for (std::size_t at = 0; (at = body.find("<Key>", at)) != std::string::npos; ++at)
        all.push_back(body.substr(at + 5, body.find('<', at + 5) - at - 5));
      token = xml_value(body, "NextContinuationToken");
      if (!token.empty()) token = "&continuation-token=" + token;
    } while (!token.empty());
    EXPECT_EQ(all, (Names{"q!c", "q-a", "q/deep/y", "q/x", "q0", "top"})) << max;
  }
  EXPECT_NE(sim_->get("/").body.find("<Name>b</Name>"), std::string::npos);
}

TEST_F(FolderSim, ServesFilesAndKeepsIdentity) {
  EXPECT_EQ(sim_->get("/b/q/deep/y").body, "b/q/deep/y");
  EXPECT_EQ(sim_->get("/b/q/deep/y", "Range: bytes=2-2\r\n").body, "q");
  const std::string etag = sim_->get("/b/top").header("etag");
  EXPECT_EQ(sim_->client->request("HEAD", "/b/top").header("etag"), etag);
  {
    std::ofstream(root_ / "b/top", std::ios::app) << "more";
  }
  EXPECT_EQ(sim_->get("/b/top", "If-Match: " + etag + "\r\n").status, 412);
  for (const auto* target : {"/b/q", "/b/q/", "/b/top/", "/b/./top", "/b/q/../top", "/b/..%2Fother%2Fz", "/b//top", "/b/top%00"})
    EXPECT_EQ(sim_->get(target).status, 404) << target;
  EXPECT_EQ(sim_->get("/../x").status, 404);
}

TEST_F(FolderSim, PutsAndDeletesPlainFiles) {
  EXPECT_EQ(sim_->put("/b/n/e/w", "fresh").status, 200);
  EXPECT_EQ(sim_->get("/b/n/e/w").body, "fresh");
  EXPECT_EQ(sim_->put("/b/n/e/w", "x", "If-None-Match: *\r\n").status, 412);
  EXPECT_EQ(sim_->put("/b/top/below", "x").status, 409) << "a file is no folder";
  EXPECT_EQ(sim_->put("/b/bad/", "x").status, 400);
  EXPECT_EQ(sim_->client->request("DELETE", "/b/n/e/w").status, 204);
  EXPECT_FALSE(std::filesystem::exists(root_ / "b/n")) << "folders that became empty go too";
  EXPECT_EQ(list("prefix=.s3sim").size(), 0U);
  EXPECT_TRUE(std::filesystem::exists(root_ / "b/top"));
}

TEST(Sim, StartErrors) {
  Options options;
  options.mode = Options::Mode::kFolder;
  options.folder = "/nonexistent/folder";
  EXPECT_EQ(start(options).error().code(), ErrorCode::kNotFound);
  options.folder = "/dev/null";
  EXPECT_EQ(start(options).error().code(), ErrorCode::kNotDirectory);
  options = {};
  options.faults = "nonsense";
  EXPECT_EQ(start(options).error().code(), ErrorCode::kInvalidArgument);
  options = {};
  options.mode = Options::Mode::kProxy;
  options.upstream = "ftp://x";
  EXPECT_EQ(start(options).error().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace thermo::s3sim
