#pragma once
// The values of all options of one command, and where each came from. A later source wins over an earlier one: default, config
// file, flags. Value type.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "app/option_table.h"
#include "base/log.h"
#include "base/result.h"

namespace thermo::app {

/// How long answers of the store are believed.
struct Ttl {
  Nanos value{0};  ///< 0: strict; Nanos::max(): immutable
};

class Settings {
 public:
  enum class Source : std::uint8_t { kDefault, kFile, kFlag };

  Settings();

  /// Checks and keeps a value; `where` ("--ttl", "thermo.toml:12") goes into the error and into origin(). One of a weaker source
  /// than the present one is checked but not kept. kWords values of one source add up.
  [[nodiscard]] Result<void> set(const OptionSpec& spec, std::string_view value, Source source, std::string_view where);

  /// The text of an option of the table; names that are not in it are bugs.
  [[nodiscard]] const std::string& text(std::string_view name) const;
  [[nodiscard]] bool given(std::string_view name) const;  ///< not the default
  [[nodiscard]] Source source(std::string_view name) const;
  [[nodiscard]] const std::string& origin(std::string_view name) const;

  // Typed; what set() let in always parses.
  [[nodiscard]] bool on(std::string_view name) const { return text(name) == "true"; }
  [[nodiscard]] std::uint64_t size(std::string_view name) const;
  [[nodiscard]] unsigned count(std::string_view name) const;
  [[nodiscard]] Nanos duration(std::string_view name) const;
  [[nodiscard]] Ttl ttl(std::string_view name) const;
  [[nodiscard]] std::uint32_t mode(std::string_view name) const;
  [[nodiscard]] log::Level level(std::string_view name) const;
  /// Bytes of a kShare option on a file system of `total` bytes.
  [[nodiscard]] std::uint64_t share(std::string_view name, std::uint64_t total) const;

  /// All values as a TOML file with their origins as comments: `thermo config --print`.
  [[nodiscard]] std::string to_toml() const;

 private:
  struct Value {
    std::string text;
    Source source = Source::kDefault;
    std::string origin = "default";
  };
  [[nodiscard]] const Value& value(std::string_view name) const;
  std::map<std::string_view, Value> values_;  // by OptionSpec::name
};

}  // namespace thermo::app
