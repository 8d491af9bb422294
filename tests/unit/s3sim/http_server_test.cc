// The HTTP server on the wire.

#include "net/http_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <thread>

#include "raw_client.h"

namespace thermo::net {
namespace {

using std::chrono::milliseconds;
using test::RawClient;

/// Says what it got: "METHOD target body".
void echo(Exchange& exchange) {
  auto body = exchange.read_all(1 << 20);
  if (!body) return (void)exchange.respond(400, {}, body.error().message());
  (void)exchange.respond(200, {{"X-Test", "a\r\nInjected: 1"}},
                         exchange.request().method + " " + exchange.request().target + " " + *body);
}

std::unique_ptr<HttpServer> serve(Handler handler, HttpServerOptions options = {}) {
  auto server = start_http_server(options, std::move(handler));
  EXPECT_TRUE(server) << server.error().describe();
  return std::move(*server);
}

TEST(HttpServer, KeepAliveManyRequestsRawTargets) {
  const auto server = serve(echo);
  RawClient client(server->port());
  for (int i = 0; i < 50; ++i) {
    const auto got = client.request(i % 2 ? "GET" : "PUT", "/a%2Fb//../c?x=%20", "", i % 2 ? "" : "body");
    EXPECT_EQ(got.status, 200);
    EXPECT_EQ(got.body, i % 2 ? "GET /a%2Fb//../c?x=%20 " : "PUT /a%2Fb//../c?x=%20 body");
    EXPECT_EQ(got.header("injected"), "") << "a line break in a value is no new header";
  }
  EXPECT_TRUE(client.connected());
}

TEST(HttpServer, PipelinedRequestsAndBytesOneByOne) {
  const auto server = serve(echo);
  RawClient client(server->port());
  client.send("GET /1 HTTP/1.1\r\n\r\nPUT /2 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc\r\nGET /3 HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.receive().body, "GET /1 ");
  EXPECT_EQ(client.receive().body, "PUT /2 abc");
  EXPECT_EQ(client.receive().body, "GET /3 ");
  for (const char c : std::string("POST /slow HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi")) client.send({&c, 1});
  EXPECT_EQ(client.receive().body, "POST /slow hi");
}

TEST(HttpServer, ChunkedBodies) {
  const auto server = serve(echo);
  RawClient client(server->port());
  client.send(
      "PUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;ext=1\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: x\r\n\r\nGET /n "
      "HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.receive().body, "PUT /c hello!");
  EXPECT_EQ(client.receive().body, "GET /n ");
  client.send("PUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n");
  EXPECT_EQ(client.receive().status, 400);
  EXPECT_TRUE(client.closed_within(2000));
}

TEST(HttpServer, ExpectIsAnsweredWhenTheBodyIsWanted) {
  const auto server = serve([](Exchange& exchange) {
    if (exchange.request().target == "/no") return (void)exchange.respond(403, {}, "no");
    echo(exchange);
  });
  RawClient client(server->port());
  client.send("PUT /yes HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.receive().status, 100);
  client.send("data");
  EXPECT_EQ(client.receive().body, "PUT /yes data");
  client.send("PUT /no HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  const auto refused = client.receive();
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.header("connection"), "close") << "whether the body follows cannot be known";
}

TEST(HttpServer, UnreadBodies) {
  const auto server = serve([](Exchange& exchange) { (void)exchange.respond(403, {}, "no"); });
  RawClient client(server->port());
  EXPECT_EQ(client.request("PUT", "/small", "", std::string(100'000, 'x')).status, 403);
  EXPECT_TRUE(client.connected());
  EXPECT_EQ(client.request("GET", "/next").status, 403) << "the rest of the body was read away";
  const auto large = client.request("PUT", "/large", "", std::string(40 << 20, 'x'));
  EXPECT_EQ(large.status, 403) << "no reset in place of the answer";
  EXPECT_EQ(large.header("connection"), "close");
}

TEST(HttpServer, HeadAnnouncesAndSendsNothing) {
  const auto server = serve([](Exchange& exchange) {
    if (exchange.request().target == "/304") return (void)exchange.respond(304, {}, "nothing");
    (void)exchange.respond(404, {}, "twelve bytes");
  });
  RawClient client(server->port());
  const auto head = client.request("HEAD", "/");
  EXPECT_EQ(head.header("content-length"), "12");
  EXPECT_EQ(client.request("GET", "/304").header("content-length"), "");
  EXPECT_EQ(client.request("GET", "/").body, "twelve bytes") << "the connection is in step";
  EXPECT_EQ(client.rest(), "");
}

TEST(HttpServer, BadHeads) {
  const auto server = serve(echo);
  const std::string ok = "GET /" + std::string(8000, 'k') + " HTTP/1.1\r\nX: " + std::string(50'000, 'v') + "\r\n\r\n";
  RawClient good(server->port());
  good.send(ok);
  EXPECT_EQ(good.receive().status, 200) << "58 KB of head are fine";
  RawClient large(server->port());
  large.send("GET / HTTP/1.1\r\nX: " + std::string(70'000, 'v'));
  EXPECT_EQ(large.receive().status, 431);
  for (const std::string head : {"nonsense\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n",
                                 "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "GET  HTTP/9.9\r\n\r\n"}) {
    RawClient client(server->port());
    client.send(head);
    EXPECT_EQ(client.receive().status, 400) << head;
    EXPECT_TRUE(client.closed_within(2000));
  }
}

TEST(HttpServer, FilesShortBodiesAndAborts) {
  char path[] = "/tmp/thermo-http-XXXXXX";
  const int fd = ::mkstemp(path);
  ::unlink(path);
  const std::string content(3 << 20, 'f');
  ASSERT_EQ(::write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
  const auto server = serve([&](Exchange& exchange) {
    const std::string& target = exchange.request().target;
    if (target == "/silent") return exchange.close(false);
    if (target == "/nothing") return;
    (void)exchange.send_head(200, {}, 1 << 20);
    if (target == "/short") return (void)exchange.send_body(std::as_bytes(std::span("abc", 3)));
    (void)exchange.send_file(fd, 1 << 20, target == "/abort" ? 1000 : 1 << 20);
    if (target == "/abort") exchange.close(true);
  });
  RawClient client(server->port());
  EXPECT_EQ(client.request("GET", "/file").body, content.substr(0, 1 << 20));
  EXPECT_EQ(client.request("HEAD", "/file").status, 200);
  const auto cut = client.request("GET", "/short");
  EXPECT_EQ(cut.body, "abc");
  EXPECT_FALSE(cut.complete);
  EXPECT_FALSE(cut.reset);
  EXPECT_TRUE(client.request("GET", "/abort").reset);
  EXPECT_EQ(client.request("GET", "/silent").status, 0);
  EXPECT_EQ(client.request("GET", "/nothing").status, 500) << "a handler that forgot to answer";
  ::close(fd);
}

TEST(HttpServer, OverTheCapIs503AndTheNextIsServedAgain) {
  HttpServerOptions options;
  options.max_connections = 2;
  const auto server = serve(echo, options);
  RawClient first(server->port()), third(server->port());
  {
    RawClient second(server->port());
    EXPECT_EQ(first.request("GET", "/").status, 200);
    EXPECT_EQ(second.request("GET", "/").status, 200);
    const auto refused = third.request("GET", "/");
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.header("connection"), "close");
  }
  int status = 0;
  for (int i = 0; i < 200 && status != 200; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
    status = third.request("GET", "/").status;
  }
  EXPECT_EQ(status, 200);
}

TEST(HttpServer, IdleConnectionsEnd) {
  HttpServerOptions options;
  options.idle_timeout = milliseconds(100);
  const auto server = serve(echo, options);
  RawClient client(server->port());
  EXPECT_EQ(client.request("GET", "/").status, 200);
  EXPECT_TRUE(client.closed_within(3000));
}

TEST(HttpServer, StopEndsIdleOnesAtOnceAndLetsRunningOnesFinish) {
  std::atomic<bool> running{false};
  auto server = serve([&](Exchange& exchange) {
    if (exchange.request().target == "/slow") {
      running = true;
      std::this_thread::sleep_for(milliseconds(300));
    }
    echo(exchange);
  });
  RawClient idle(server->port()), slow(server->port());
  EXPECT_EQ(idle.request("GET", "/").status, 200);
  slow.send("GET /slow HTTP/1.1\r\n\r\n");
  while (!running) std::this_thread::yield();
  std::thread stopper([&] { server->stop(); });
  EXPECT_TRUE(idle.closed_within(5000));
  const auto got = slow.receive();
  EXPECT_EQ(got.body, "GET /slow ");
  EXPECT_EQ(got.header("connection"), "close");
  stopper.join();
  server->stop();  // again does nothing
  EXPECT_FALSE(RawClient(server->port()).send("GET / HTTP/1.1\r\n\r\n"));
}

TEST(HttpServer, StopDoesNotWaitForAReaderThatNeverReads) {
  auto server = serve([](Exchange& exchange) {
    (void)exchange.send_head(200, {}, 1LL << 40);
    const std::string piece(1 << 20, 'x');
    while (exchange.send_body(std::as_bytes(std::span(piece)))) {
    }
  });
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\n\r\n");
  std::this_thread::sleep_for(milliseconds(100));
  const auto begin = Clock::system().now();
  server->stop();
  EXPECT_LT(Clock::system().now() - begin, std::chrono::seconds(10));
}

TEST(HttpServer, StartErrorsNameTheMend) {
  const auto server = serve(echo);
  HttpServerOptions options;
  options.port = server->port();
  const auto taken = start_http_server(options, echo);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), ErrorCode::kBusy);
  options = {};
  options.address = "somewhere";
  EXPECT_EQ(start_http_server(options, echo).error().code(), ErrorCode::kInvalidArgument);
  options = {};
  options.tls_certificate = "/nonexistent.pem";
  EXPECT_FALSE(start_http_server(options, echo)) << "a certificate without a key";
  options.tls_key = "/nonexistent.key";
  EXPECT_EQ(start_http_server(options, echo).error().code(), ErrorCode::kTls);
}

/// A self-signed certificate for `name` in two files.
void write_certificate(const std::string& certificate, const std::string& key, const char* name) {
  EVP_PKEY* pair = EVP_EC_gen("P-256");
  X509* x = X509_new();
  X509_set_version(x, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
  X509_gmtime_adj(X509_getm_notBefore(x), -3600);
  X509_gmtime_adj(X509_getm_notAfter(x), 3600);
  X509_set_pubkey(x, pair);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name), -1, -1,
                             0);
  X509_set_issuer_name(x, X509_get_subject_name(x));
  X509_EXTENSION* alt = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, (std::string("DNS:") + name).c_str());
  X509_add_ext(x, alt, -1);
  X509_EXTENSION_free(alt);
  X509_sign(x, pair, EVP_sha256());
  FILE* file = std::fopen(certificate.c_str(), "w");
  PEM_write_X509(file, x);
  std::fclose(file);
  file = std::fopen(key.c_str(), "w");
  PEM_write_PrivateKey(file, pair, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  X509_free(x);
  EVP_PKEY_free(pair);
}

TEST(HttpServer, Tls) {
  char dir[] = "/tmp/thermo-tls-XXXXXX";
  ASSERT_NE(::mkdtemp(dir), nullptr);
  HttpServerOptions options;
  options.tls_certificate = std::string(dir) + "/c.pem";
  options.tls_key = std::string(dir) + "/k.pem";
  write_certificate(options.tls_certificate, options.tls_key, "s3.example");
  const auto server = serve(
      [](Exchange& exchange) {
        EXPECT_EQ(exchange.socket(), -1);
        echo(exchange);
      },
      options);

  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  ASSERT_EQ(SSL_CTX_load_verify_locations(context, options.tls_certificate.c_str(), nullptr), 1);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  for (const auto* name : {"s3.example", "other.example"}) {
    BIO* bio = BIO_new_ssl_connect(context);
    SSL* ssl = nullptr;
    BIO_get_ssl(bio, &ssl);
    SSL_set1_host(ssl, name);
    BIO_set_conn_hostname(bio, ("127.0.0.1:" + std::to_string(server->port())).c_str());
    const bool matches = std::string_view(name) == "s3.example";
    EXPECT_EQ(BIO_do_connect(bio) == 1, matches) << name;
    if (matches) {
      BIO_puts(bio, "GET /tls HTTP/1.1\r\n\r\n");
      char buffer[1024];
      const int n = BIO_read(bio, buffer, sizeof buffer);
      EXPECT_NE(std::string(buffer, static_cast<std::size_t>(std::max(n, 0))).find("GET /tls "), std::string::npos);
    }
    BIO_free_all(bio);
  }
  SSL_CTX_free(context);
  ::unlink(options.tls_certificate.c_str());
  ::unlink(options.tls_key.c_str());
  ::rmdir(dir);
}

}  // namespace
}  // namespace thermo::net
