#pragma once
// Everything the daemon must know to serve one mount, as `thermo mount` sends it over the admin socket. Value type.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/settings.h"
#include "app/store_url.h"
#include "base/clock.h"
#include "base/result.h"
#include "store/s3/credentials.h"
#include "store/s3/s3_store.h"

namespace thermo::app {

struct MountSpec {
  StoreUrl store;
  std::string endpoint;  ///< empty: AWS
  std::string region;    ///< empty: found out
  store::Addressing addressing = store::Addressing::kAuto;
  bool requester_pays = false;
  std::string ca_bundle;
  bool verify_tls = true;
  store::CredentialOptions credentials;  ///< of the user who mounts; never logged

  std::string mount_point;  ///< absolute
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t file_mode = 0644;
  std::uint32_t dir_mode = 0755;
  Nanos ttl{0};  ///< 0: strict; Nanos::max(): immutable
  Nanos timeout{0};
  std::uint32_t fuse_minor = 45;
  bool debug_fuse = false;
  bool debug_s3 = false;
};

/// From the settings of `thermo mount`, the caller's user, home folder and AWS_* environment. kInvalidArgument for
/// contradictions.
[[nodiscard]] Result<MountSpec> make_mount_spec(const StoreUrl& store, std::string_view mount_point, const Settings& settings);

[[nodiscard]] nlohmann::json to_json(const MountSpec& spec);
/// kInvalidArgument names the member that is missing or of the wrong kind.
[[nodiscard]] Result<MountSpec> mount_spec_from_json(const nlohmann::json& value);

}  // namespace thermo::app
