#pragma once
// The S3 protocol as an ObjectStore: signing, addressing, region redirects, XML. No retries here (store/layers has them), except
// one after a region or credential refresh.

#include <memory>
#include <string>

#include "net/http_client.h"
#include "store/object_store.h"
#include "store/s3/credentials.h"

namespace thermo::store {

enum class Addressing : std::uint8_t { kAuto, kPath, kVirtualHost };

struct S3Options {
  std::string bucket;
  std::string endpoint;                       ///< "http://127.0.0.1:8333"; empty: AWS of `region`
  std::string region;                         ///< empty: us-east-1, then what the store says
  Addressing addressing = Addressing::kAuto;  ///< auto: path for an IP endpoint, dotted or upper-case buckets; else virtual host
                                              ///< for AWS, path for others
  bool requester_pays = false;
  bool checksum_mode = true;  ///< ask for stored checksums on whole-object GETs and verify them
  std::shared_ptr<CredentialProvider> credentials;
  std::shared_ptr<net::HttpClient> http;
  const Clock* clock = &Clock::system();
};

/// kInvalidArgument for a bad bucket name or endpoint, naming it. Touches no network.
[[nodiscard]] Result<ObjectStorePtr> make_s3_store(const S3Options& options);

}  // namespace thermo::store
