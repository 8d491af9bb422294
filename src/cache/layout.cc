#include "cache/layout.h"

namespace thermo::cache {

std::string bucket_dir(unsigned bucket) {
  static constexpr char kDigits[] = "0123456789abcdef";
  return std::string(kObjectsDir) + "/" + kDigits[(bucket >> 4) & 15] + kDigits[bucket & 15];
}

std::string object_path(const VersionId& version) {
  const std::string hex = version.hex();
  return std::string(kObjectsDir) + "/" + hex.substr(0, 2) + "/" + hex;
}

std::string sidecar_path(const VersionId& version) { return object_path(version) + kSidecarSuffix; }

}  // namespace thermo::cache
