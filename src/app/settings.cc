#include "app/settings.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdlib>

#include "app/users.h"
#include "base/units.h"

namespace thermo::app {
namespace {

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

Settings::Settings() {
  for (const auto& spec : option_table()) values_[spec.name].text = spec.fallback;
}

Result<void> Settings::set(const OptionSpec& spec, std::string_view text, Source source, std::string_view where) {
  if (auto ok = check_value(spec, text); !ok) return fail(ok.error().within(where));
  Value& value = values_[spec.name];
  if (source < value.source) return {};
  if (spec.kind == Kind::kWords && source == value.source && !value.text.empty()) {
    value.text += ',';
    value.text += text;
  } else {
    value.text = text;
  }
  value.source = source;
  value.origin = where;
  return {};
}

const Settings::Value& Settings::value(std::string_view name) const {
  const auto it = values_.find(name);
  if (it == values_.end()) std::abort();  // a name that the table lacks is a bug of the caller
  return it->second;
}

const std::string& Settings::text(std::string_view name) const { return value(name).text; }
bool Settings::given(std::string_view name) const { return value(name).source != Source::kDefault; }
Settings::Source Settings::source(std::string_view name) const { return value(name).source; }
const std::string& Settings::origin(std::string_view name) const { return value(name).origin; }

std::uint64_t Settings::size(std::string_view name) const { return parse_size(text(name)).value_or(0); }

unsigned Settings::count(std::string_view name) const {
  const auto& digits = text(name);
  unsigned n = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), n);
  return n;
}

Nanos Settings::duration(std::string_view name) const { return parse_duration(text(name)).value_or(Nanos(0)); }

Ttl Settings::ttl(std::string_view name) const {
  if (text(name) == "strict") return {Nanos(0)};
  if (text(name) == "immutable") return {Nanos::max()};
  return {duration(name)};
}

std::uint32_t Settings::mode(std::string_view name) const { return parse_mode(text(name)).value_or(0); }

log::Level Settings::level(std::string_view name) const {
  const auto& word = text(name);
  if (word == "debug") return log::Level::kDebug;
  if (word == "warn") return log::Level::kWarn;
  if (word == "error") return log::Level::kError;
  return log::Level::kInfo;
}

std::uint64_t Settings::share(std::string_view name, std::uint64_t total) const {
  const std::string_view text_value = text(name);
  if (!text_value.ends_with('%')) return size(name);
  double percent = 0;
  std::from_chars(text_value.data(), text_value.data() + text_value.size() - 1, percent);
  return static_cast<std::uint64_t>(static_cast<double>(total) * percent / 100);
}

std::string Settings::to_toml() const {
  std::string out;
  std::string_view section;
  for (const auto& spec : option_table()) {
    const auto dot = spec.key.find('.');
    if (spec.key.substr(0, dot) != section) {
      section = spec.key.substr(0, dot);
      out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", section);
    }
    const Value& v = value(spec.name);
    const bool bare = spec.kind == Kind::kSwitch || spec.kind == Kind::kCount;
    const auto name = spec.key.substr(dot + 1);
    // A default that depends on who runs it has no text: shown as a comment, so that the page can be read back.
    // A secret is shown as one too.
    if (v.text.empty() || spec.name == "secret-access-key" || spec.name == "session-token") {
      out += fmt::format("# {} = ...  # {}\n", name, spec.help);
    } else {
      out += fmt::format("{} = {}  # {}\n", name, bare ? v.text : toml_string(v.text), v.origin);
    }
  }
  return out;
}

}  // namespace thermo::app
