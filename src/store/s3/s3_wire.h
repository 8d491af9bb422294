#pragma once
// One signed exchange with the bucket, repeated at most once for each thing it can learn from a refusal: the bucket's region,
// newer credentials, the store's clock.

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "net/http_client.h"
#include "store/s3/s3_address.h"
#include "store/s3/s3_error.h"
#include "store/s3/s3_store.h"

namespace thermo::store {

struct S3Call {
  std::string method = "GET";
  std::string key;                                         ///< empty: the bucket itself
  std::vector<std::pair<std::string, std::string>> query;  ///< decoded
  std::vector<net::Header> headers;                        ///< all of them are signed
  std::span<const std::byte> body;
  std::uint64_t expected_body = 0;
  net::BodyRouter* router = nullptr;
};

/// Thread-safe.
class S3Wire {
 public:
  S3Wire(const S3Options& options, S3Address address);

  /// A 2xx answer, or the Error of any other one, or of the transport.
  [[nodiscard]] Result<net::HttpResponse> send(const RequestContext& ctx, const S3Call& call);
  [[nodiscard]] const S3Address& address() const { return address_; }
  /// "GET 'a/b' of bucket 'x'", for messages.
  [[nodiscard]] std::string describe(const S3Call& call) const;

 private:
  struct Tried {
    bool region = false, credentials = false, clock = false;
  };
  using Credentials = CredentialProvider::Credentials;

  Result<net::HttpResponse> send_once(const RequestContext& ctx, const S3Call& call, const Credentials& credentials,
                                      const std::string& region, WallNanos now);
  /// True when what the refusal says makes another attempt sensible.
  Result<bool> learn(const RequestContext& ctx, const net::HttpResponse& answer, const S3Failure& failure, WallNanos sent_at,
                     const std::string& region, Credentials& credentials, Tried& tried);
  bool learn_region(const S3Failure& failure, const std::string& region, Tried& tried);
  bool learn_clock(const net::HttpResponse& answer, const S3Failure& failure, WallNanos sent_at, Tried& tried);
  Error skew_error(const S3Failure& failure, const net::HttpResponse& answer, const S3Call& call) const;
  std::string region() const;

  const S3Options options_;
  const S3Address address_;
  std::atomic<WallNanos> clock_offset_{0};  // store's clock minus ours; one number, no ordering with other data
  mutable Mutex mutex_{LockRank::kStore, "s3 region"};
  std::string region_ GUARDED_BY(mutex_);
};

}  // namespace thermo::store
