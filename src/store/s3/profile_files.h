#pragma once
// The shared credentials and config files of one user, and what a profile says in them.

#include <string>
#include <vector>

#include "base/result.h"
#include "store/s3/credentials.h"
#include "store/s3/ini_file.h"

namespace thermo::store {

struct ProfilePlace {
  std::string profile;
  bool named = false;            ///< by the user, not the default
  std::string credentials_file;  ///< empty: no home folder, no AWS_SHARED_CREDENTIALS_FILE
  std::string config_file;
};
[[nodiscard]] ProfilePlace profile_place(const CredentialOptions& options);

struct ProfileKeys {
  net::AccessKey key;
  std::string file;  ///< where they stand
};
/// kAccessDenied naming every place looked at, kInvalidArgument for a named profile that does not exist (with those that do),
/// kNotSupported for one that needs what this release does not have.
[[nodiscard]] Result<ProfileKeys> load_profile_keys(const ProfilePlace& place);
/// A setting of the profile (config file first, then credentials file), empty when not set or not readable.
[[nodiscard]] std::string profile_setting(const ProfilePlace& place, const std::string& name);
/// endpoint_url of the profile: its services section's for s3, then its own.
[[nodiscard]] std::string profile_endpoint(const ProfilePlace& place);
/// Value of an environment variable, empty when not set.
[[nodiscard]] std::string variable(const CredentialOptions& options, const std::string& name);

}  // namespace thermo::store
