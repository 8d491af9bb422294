#pragma once
// Where S3 access keys come from.

#include <map>
#include <memory>
#include <string>

#include "base/context.h"
#include "base/result.h"
#include "net/sigv4.h"

namespace thermo::store {

/// Thread-safe.
class CredentialProvider {
 public:
  virtual ~CredentialProvider() = default;
  struct Credentials {
    bool anonymous = false;
    net::AccessKey key;
    WallNanos expires = 0;  ///< 0: never
  };
  /// The current credentials; a provider with an expiry refreshes in the background before it and goes on with the old ones while
  /// they last.
  [[nodiscard]] virtual Result<Credentials> get(const RequestContext& ctx) = 0;
  /// The store rejected what get() gave: read again at the next get(). Returns whether anything newer may come.
  virtual bool invalidate() = 0;
  /// For `doctor` and logs: "environment", "profile 'x' of ~/.aws/credentials"...
  [[nodiscard]] virtual std::string describe() const = 0;
};

struct CredentialOptions {
  std::string access_key_id, secret_access_key, session_token;  ///< from flags; empty: not given
  std::string profile;                                          ///< empty: AWS_PROFILE or "default"
  bool anonymous = false;
  std::map<std::string, std::string> environment;  ///< AWS_* of the user who mounts
  std::string home;                                ///< for ~/.aws/credentials and ~/.aws/config
};

/// The chain flags > environment > shared credentials file > shared config file; kAccessDenied with a message that names every
/// place looked at when none has keys. Files are read again when they change (rotation).
[[nodiscard]] Result<std::shared_ptr<CredentialProvider>> make_credentials(const CredentialOptions& options);
/// Region of AWS_REGION / AWS_DEFAULT_REGION or the profile; empty when not set.
[[nodiscard]] std::string default_region(const CredentialOptions& options);
/// endpoint_url of AWS_ENDPOINT_URL_S3 / AWS_ENDPOINT_URL / the profile; empty when not set.
[[nodiscard]] std::string default_endpoint(const CredentialOptions& options);

}  // namespace thermo::store
