#pragma once
// `-o ro,allow_other,noatime,...`: what mount(8), fstab and people put there. Pure.

#include <string>
#include <string_view>

#include "base/result.h"

namespace thermo::fuse {

/// nosuid, nodev and default_permissions hold always and are not listed.
struct MountOptions {
  unsigned long flags = 0;   ///< MS_* of mount(2) beyond MS_NOSUID and MS_NODEV
  bool allow_other = false;  ///< of meaning to ordinary users only: root's mounts are open to everybody that the modes admit
  bool nonempty = false;     ///< mount over a folder that is not empty
};

/// Options that only fstab and mount(8) understand are ignored; an unknown one is kInvalidArgument and named.
[[nodiscard]] Result<MountOptions> parse_mount_options(std::string_view text);

/// The generic options of `flags` as words for fusermount3 ("ro,noatime"), empty for 0.
[[nodiscard]] std::string flag_words(unsigned long flags);

}  // namespace thermo::fuse
