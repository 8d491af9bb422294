// Signatures, when they are to be checked.

#include "net/sigv4.h"
#include "s3sim/simulator.h"

namespace thermo::s3sim {
namespace {

class Keys final : public net::SecretFinder {
 public:
  explicit Keys(const std::map<std::string, std::string>& keys) : keys_(keys) {}
  std::optional<std::string> secret(const std::string& access_key_id) const override {
    const auto it = keys_.find(access_key_id);
    return it == keys_.end() ? std::nullopt : std::optional(it->second);
  }

 private:
  const std::map<std::string, std::string>& keys_;
};

}  // namespace

S3Result<void> Simulator::authenticate(const Call& call) const {
  if (!options_.check_signatures) return {};
  const auto& http = call.exchange.request();
  const auto verified = net::verify(http.method, http.target, http.headers, Keys(options_.keys), options_.region, wall(call));
  using net::AuthFailure;
  switch (verified.failure) {
    case AuthFailure::kNone: return {};
    case AuthFailure::kMissing: return refuse(403, "AccessDenied", "Access Denied");
    case AuthFailure::kMalformed: return refuse(400, "AuthorizationHeaderMalformed", verified.detail);
    case AuthFailure::kUnknownKey:
      return refuse(403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.");
    case AuthFailure::kSignatureMismatch:
      return refuse(
          403, "SignatureDoesNotMatch",
          "The request signature we calculated does not match the signature you provided. Check your key and signing method.");
    case AuthFailure::kSkewed: {
      S3Error error{403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large."};
      error.fields = {{"ServerTime", iso_time(wall(call))}, {"MaxAllowedSkewMilliseconds", "900000"}};
      return tl::unexpected<S3Error>(std::move(error));
    }
    case AuthFailure::kExpired: return refuse(403, "AccessDenied", "Request has expired");
    case AuthFailure::kWrongRegion: {
      S3Error error{400, "AuthorizationHeaderMalformed", verified.detail};
      error.fields = {{"Region", region()}};
      error.headers = {{"x-amz-bucket-region", region()}};
      return tl::unexpected<S3Error>(std::move(error));
    }
  }
  return refuse(403, "AccessDenied", "Access Denied");
}

}  // namespace thermo::s3sim
