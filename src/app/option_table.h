#pragma once
// Every option of mounts and daemons, declared once: command-line flag, TOML key, kind of value, default and help. Flags, config
// file,
// `-o name=value` and `thermo config --print` are all driven by it.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace thermo::app {

enum class Kind : std::uint8_t {
  kText,
  kSwitch,     ///< true or false; as a flag it takes no value
  kSize,       ///< "256MiB"
  kShare,      ///< a size or a share of the file system: "20%"
  kDuration,   ///< "30s"
  kFreshness,  ///< a duration, "immutable" or "strict"
  kUid,        ///< number or name
  kGid,
  kMode,    ///< octal permission bits
  kCount,   ///< a whole number
  kListen,  ///< loopback address and port, or "off"
  kLevel,   ///< debug, info, warn, error
  kWords,   ///< comma-separated words, repeatable
};

/// Which commands take it.
enum Scope : unsigned { kMountScope = 1, kDaemonScope = 2, kBothScopes = 3 };

struct OptionSpec {
  std::string_view name;  ///< flag without dashes; "o" is a one-letter flag
  std::string_view key;   ///< in TOML: "cache.size"
  Kind kind = Kind::kText;
  std::string_view fallback;  ///< default as text; empty: see help
  std::string_view metavar;   ///< in help; empty for switches
  std::string_view help;
  std::string_view group;  ///< heading in --help
  unsigned scope = kBothScopes;
  std::string_view least = {};  ///< smallest size or duration that makes sense
};

[[nodiscard]] std::span<const OptionSpec> option_table();
/// By flag name ('_' and '-' are the same), nullptr when unknown.
[[nodiscard]] const OptionSpec* find_option(std::string_view name);
/// By TOML key.
[[nodiscard]] const OptionSpec* find_key(std::string_view key);
[[nodiscard]] std::vector<std::string_view> option_names();
[[nodiscard]] std::vector<std::string_view> option_keys();

/// Whether `value` can be a value of the option; kInvalidArgument names it and how to write it.
[[nodiscard]] Result<void> check_value(const OptionSpec& spec, std::string_view value);

}  // namespace thermo::app
