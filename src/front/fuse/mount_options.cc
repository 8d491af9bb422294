#include "front/fuse/mount_options.h"

#include <sys/mount.h>

#include <algorithm>
#include <array>

namespace thermo::fuse {
namespace {

struct FlagWord {
  std::string_view word;
  unsigned long set;
  unsigned long clear;
};

constexpr FlagWord kFlagWords[] = {
    {"ro", MS_RDONLY, 0},           {"rw", 0, MS_RDONLY},
    {"noexec", MS_NOEXEC, 0},       {"exec", 0, MS_NOEXEC},
    {"sync", MS_SYNCHRONOUS, 0},    {"async", 0, MS_SYNCHRONOUS},
    {"dirsync", MS_DIRSYNC, 0},     {"noatime", MS_NOATIME, 0},
    {"atime", 0, MS_NOATIME},       {"nodiratime", MS_NODIRATIME, 0},
    {"diratime", 0, MS_NODIRATIME}, {"relatime", MS_RELATIME, 0},
    {"norelatime", 0, MS_RELATIME}, {"strictatime", MS_STRICTATIME, 0},
    {"lazytime", MS_LAZYTIME, 0},   {"nolazytime", 0, MS_LAZYTIME},
};

constexpr std::array<std::string_view, 4> kAlwaysOn = {"nosuid", "nodev", "default_permissions", "defaults"};
constexpr std::array<std::string_view, 10> kFstabOnly = {"auto",  "noauto", "user",   "nouser",  "users",
                                                         "owner", "group",  "nofail", "_netdev", "silent"};

template <class List>
bool contains(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool fstab_only(std::string_view word) {
  return contains(kFstabOnly, word) || word.starts_with("x-") || word.starts_with("X-") || word.starts_with("comment=");
}

Result<void> apply(std::string_view word, MountOptions& options) {
  for (const auto& flag : kFlagWords) {
    if (word != flag.word) continue;
    options.flags = (options.flags & ~flag.clear) | flag.set;
    return {};
  }
  if (word == "allow_other") {
    options.allow_other = true;
  } else if (word == "nonempty") {
    options.nonempty = true;
  } else if (word == "suid" || word == "dev") {
    return fail(ErrorCode::kInvalidArgument,
                "mount option '" + std::string(word) + "': mounts are always nosuid and nodev; leave it out");
  } else if (!contains(kAlwaysOn, word) && !fstab_only(word)) {
    return fail(ErrorCode::kInvalidArgument, "unknown mount option '" + std::string(word) +
                                                 "'; known are ro, rw, allow_other, nonempty, [no]exec, [no]atime, [no]diratime, "
                                                 "[no]relatime, strictatime, [no]lazytime, sync, async, dirsync");
  }
  return {};
}

}  // namespace

Result<MountOptions> parse_mount_options(std::string_view text) {
  MountOptions options;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto word = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    if (!word.empty()) TRY(apply(word, options));
  }
  return options;
}

std::string flag_words(unsigned long flags) {
  std::string words;
  for (const auto& flag : kFlagWords) {
    if (flag.set == 0 || (flags & flag.set) == 0) continue;
    if (!words.empty()) words += ',';
    words += flag.word;
  }
  return words;
}

}  // namespace thermo::fuse
