#pragma once
// The config file (TOML).

#include <string>
#include <string_view>

#include "app/settings.h"

namespace thermo::app {

/// Puts what `text` (of the file `name`) says into `settings`. kInvalidArgument as "name:line: ..." for what is not TOML, an
/// unknown key (with the nearest known one), a value of the wrong kind or unit.
[[nodiscard]] Result<void> parse_config(std::string_view text, std::string_view name, Settings& settings);

/// Reads `path`; empty: /etc/thermo/thermo.toml and then ~/.config/thermo/thermo.toml, those that exist.
[[nodiscard]] Result<void> load_config(const std::string& path, Settings& settings);

}  // namespace thermo::app
