#pragma once
// Attributes and extended attributes of catalog entries as this mount shows them.

#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "vfs/vfs.h"

namespace thermo::vfs {

[[nodiscard]] Attr make_attr(const catalog::Entry& entry, const Options& options);

inline constexpr std::string_view kXattrEtag = "user.thermo.etag";
inline constexpr std::string_view kXattrResidency = "user.thermo.residency";
inline constexpr std::string_view kXattrStore = "user.thermo.store";
inline constexpr std::string_view kXattrVersion = "user.thermo.version";
inline constexpr std::string_view kXattrAdmin = "user.thermo.admin";
inline constexpr std::string_view kXattrSkipped = "user.thermo.skipped";

/// "s3://bucket/" + key: `store_name` without the mount's root prefix, which is part of every key.
[[nodiscard]] std::string store_url(const Options& options, std::string_view key);

}  // namespace thermo::vfs
