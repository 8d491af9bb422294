#define TOML_EXCEPTIONS 0
// toml++ asserts that a table header begins with a character of a key, and then says the error for those that do not.
#define TOML_ASSERT(expr) static_cast<void>(0)
#include "app/config_file.h"

#include <fmt/core.h>

#include <toml++/toml.h>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "app/nearest.h"
#include "app/users.h"

namespace thermo::app {
namespace {

constexpr std::size_t kMaxConfigBytes = 1u << 20;

/// "ttl" for "mount.ttl": the section is what people forget first.
std::string suggest(std::string_view key) {
  for (const auto known : option_keys()) {
    if (known.substr(known.find('.') + 1) == key)
      return fmt::format("; write it as '{}', below [{}]", known, known.substr(0, known.find('.')));
  }
  return did_you_mean(key, option_keys());
}

struct Reader {
  std::string_view file;
  Settings& settings;

  [[nodiscard]] std::string at(const toml::node& node) const { return fmt::format("{}:{}", file, node.source().begin.line); }

  Result<void> bad(const toml::node& node, std::string_view what) const {
    return fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", at(node), what));
  }

  Result<void> table(const toml::table& table, const std::string& path) {
    for (const auto& [name, node] : table) {
      const std::string key = path.empty() ? std::string(name.str()) : path + "." + std::string(name.str());
      if (const auto* spec = find_key(key)) {
        TRY(value(*spec, node, key));
      } else if (const auto* inner = node.as_table(); inner != nullptr && path.empty()) {
        TRY(this->table(*inner, key));
      } else {
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("{}:{}: unknown key '{}'{}", file, name.source().begin.line, key, suggest(key)));
      }
    }
    return {};
  }

  Result<void> value(const OptionSpec& spec, const toml::node& node, const std::string& key) {
    const std::string where = fmt::format("{}: {}", at(node), key);
    if (const auto* flag = node.as_boolean()) {
      if (spec.kind != Kind::kSwitch) return bad(node, fmt::format("{} takes {}, not true or false", key, spec.metavar));
      return settings.set(spec, flag->get() ? "true" : "false", Settings::Source::kFile, where);
    }
    if (spec.kind == Kind::kSwitch) return bad(node, fmt::format("{} takes true or false, without quotes", key));
    if (const auto* text = node.as_string()) return settings.set(spec, text->get(), Settings::Source::kFile, where);
    if (const auto* number = node.as_integer()) {
      // 0o644 and 644 reach us as the same kind of number: only quotes say what was meant.
      if (spec.kind == Kind::kMode) return bad(node, fmt::format("{} takes octal digits in quotes, such as \"0644\"", key));
      return settings.set(spec, std::to_string(number->get()), Settings::Source::kFile, where);
    }
    if (const auto* list = node.as_array(); list != nullptr && spec.kind == Kind::kWords) {
      for (const auto& item : *list) {
        const auto* word = item.as_string();
        if (word == nullptr) return bad(item, fmt::format("{} takes a list of strings", key));
        TRY(settings.set(spec, word->get(), Settings::Source::kFile, where));
      }
      return {};
    }
    return bad(node, fmt::format("{} takes {} in quotes", key, spec.metavar));
  }
};

Result<bool> read_text(const std::string& path, std::string& text) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    const int err = errno;
    if (err == ENOENT || err == ENOTDIR) return false;
    return fail(errno_error(err, fmt::format("read the config file '{}'", path)));
  }
  std::ostringstream whole;
  whole << in.rdbuf();
  text = whole.str();
  if (text.size() > kMaxConfigBytes)
    return fail(ErrorCode::kInvalidArgument, fmt::format("the config file '{}' is larger than 1 MiB", path));
  return true;
}

}  // namespace

Result<void> parse_config(std::string_view text, std::string_view name, Settings& settings) {
  const toml::parse_result parsed = toml::parse(text, name);
  if (!parsed) {
    const auto& error = parsed.error();
    return fail(ErrorCode::kInvalidArgument, fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()));
  }
  return Reader{name, settings}.table(parsed.table(), "");
}

Result<void> load_config(const std::string& path, Settings& settings) {
  std::string text;
  if (!path.empty()) {
    TRY_ASSIGN(const bool found, read_text(path, text));
    if (!found) return fail(ErrorCode::kInvalidArgument, fmt::format("there is no config file '{}'", path));
    return parse_config(text, path, settings);
  }
  std::vector<std::string> places{"/etc/thermo/thermo.toml"};
  if (const auto home = home_folder(); !home.empty()) places.push_back(home + "/.config/thermo/thermo.toml");
  for (const auto& place : places) {
    TRY_ASSIGN(const bool found, read_text(place, text));
    if (found) TRY(parse_config(text, place, settings));
  }
  return {};
}

}  // namespace thermo::app
