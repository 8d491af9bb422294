#pragma once
// An S3 store in front of a scripted peer.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "store/s3/s3_checksum.h"
#include "store/s3/s3_store.h"
#include "unit/net/tiny_server.h"
#include "unit/store/store_testing.h"

namespace thermo::store::testing {

using thermo::testing::TinyConnection;
using thermo::testing::TinyRequest;
using thermo::testing::TinyServer;

inline constexpr const char* kEtag = "\"0123456789abcdef\"";

/// Keys that a test can rotate.
class RotatingProvider final : public CredentialProvider {
 public:
  Result<Credentials> get(const RequestContext& /*ctx*/) override {
    return Credentials{anonymous, {"KEY" + std::to_string(generation), "secret-" + std::to_string(generation), token}, 0};
  }
  bool invalidate() override {
    ++invalidations;
    if (rotate) ++generation;
    return rotate;
  }
  std::string describe() const override { return "test"; }
  bool anonymous = false;
  bool rotate = false;
  int generation = 1;
  int invalidations = 0;
  std::string token;
};

struct Scripted {
  explicit Scripted(TinyServer::Handler handler) : server(std::move(handler)) {
    options.bucket = "bucket";
    options.endpoint = server.url();
    options.region = "us-east-1";
    options.credentials = credentials;
    options.http = net::make_http_client({});
  }
  ObjectStore& store() {
    if (!made) {
      auto result = make_s3_store(options);
      EXPECT_TRUE(result) << (result ? "" : result.error().describe());
      made = *result;
    }
    return *made;
  }
  TinyServer server;
  std::shared_ptr<RotatingProvider> credentials = std::make_shared<RotatingProvider>();
  S3Options options;
  ObjectStorePtr made;
};

inline std::string error_xml(const std::string& code, const std::string& message = "words", const std::string& more = "") {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>" + code + "</Code><Message>" + message + "</Message>" + more +
         "<RequestId>REQ1</RequestId></Error>";
}

inline std::string checksum_of(std::string_view algorithm, std::string_view bytes) {
  RunningChecksum running(algorithm);
  running.update(bytes.substr(0, bytes.size() / 3));  // in pieces, as bodies come
  running.update(bytes.substr(bytes.size() / 3));
  return running.finish();
}

}  // namespace thermo::store::testing
