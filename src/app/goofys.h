#pragma once
// goofys' command line and the forms of mount(8) and fstab, rewritten as words of `thermo mount`. Pure.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace thermo::app {

struct Rewritten {
  std::vector<std::string> args;   ///< words after "thermo mount"; the store is a URL
  std::vector<std::string> notes;  ///< what was accepted but does nothing or something else here, one sentence each
};

/// "[flags] bucket[:prefix] mountpoint [-o options]", with one or two dashes, flags anywhere. Every goofys flag is rewritten,
/// noted or refused with its replacement (kInvalidArgument); flags of `thermo mount` pass through.
[[nodiscard]] Result<Rewritten> rewrite_goofys(std::span<const std::string> args);

/// What mount(8) gives /sbin/mount.thermo: "SOURCE MOUNTPOINT [-sfnv] [-N ns] [-o options] [-t type]". `fake`: mount -f, do
/// nothing.
struct HelperCall {
  std::vector<std::string> args;  ///< for rewrite_goofys
  bool fake = false;
};
[[nodiscard]] Result<HelperCall> parse_mount_helper(std::span<const std::string> args);

/// The words of a `-o` list: those that are flags here ("uid=9001", "--uid=9001", "endpoint=...") come back as flags, the rest as
/// the list for the kernel. A comma inside a value is written "\,".
struct LiftedOptions {
  std::vector<std::string> flags;
  std::string words;
};
[[nodiscard]] LiftedOptions lift_options(std::string_view list);

/// A duration as Go writes it ("1m0s", "1.5h", "0") in our form ("60000ms"); kInvalidArgument names it.
[[nodiscard]] Result<std::string> translate_go_duration(std::string_view text);

}  // namespace thermo::app
