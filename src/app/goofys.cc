#include "app/goofys.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>

#include "app/nearest.h"
#include "app/option_table.h"
#include "app/store_url.h"
#include "base/units.h"

namespace thermo::app {
namespace {

enum class Action : std::uint8_t {
  kSame,      ///< --name=value of ours
  kRename,    ///< --<replacement>=value
  kDuration,  ///< --<replacement>, from Go's notation
  kTtl,       ///< the smaller one of the two lifetimes becomes --ttl
  kCatfs,     ///< goofys' --cache "[catfs flags:]DIR"
  kNote,      ///< accepted, does nothing here: why
  kRefuse,    ///< named with what to do instead
};

struct GoofysFlag {
  std::string_view name;
  bool takes_value;
  Action action;
  std::string_view text;  ///< replacement, or the sentence
};

constexpr std::string_view kOnlyWrites = "only concerns writing, and this mount is read-only";

constexpr std::array kFlags{
    GoofysFlag{"o", true, Action::kSame, ""},
    GoofysFlag{"f", false, Action::kSame, ""},
    GoofysFlag{"uid", true, Action::kSame, ""},
    GoofysFlag{"gid", true, Action::kSame, ""},
    GoofysFlag{"file-mode", true, Action::kSame, ""},
    GoofysFlag{"dir-mode", true, Action::kSame, ""},
    GoofysFlag{"endpoint", true, Action::kSame, ""},
    GoofysFlag{"region", true, Action::kSame, ""},
    GoofysFlag{"profile", true, Action::kSame, ""},
    GoofysFlag{"requester-pays", false, Action::kSame, ""},
    GoofysFlag{"request-payer", false, Action::kRename, "requester-pays"},
    GoofysFlag{"debug_fuse", false, Action::kSame, ""},
    GoofysFlag{"debug_s3", false, Action::kSame, ""},
    GoofysFlag{"subdomain", false, Action::kRename, "virtual-host"},
    GoofysFlag{"cache", true, Action::kCatfs, ""},
    GoofysFlag{"stat-cache-ttl", true, Action::kTtl, ""},
    GoofysFlag{"type-cache-ttl", true, Action::kTtl, ""},
    GoofysFlag{"http-timeout", true, Action::kDuration, "timeout"},
    GoofysFlag{"cheap", false, Action::kNote, "does nothing here: a folder is one listing and no request is made for each file"},
    GoofysFlag{"no-implicit-dir", false, Action::kNote,
               "does nothing here: folders without a marker object are shown too, at no extra request"},
    GoofysFlag{"storage-class", true, Action::kNote, kOnlyWrites},
    GoofysFlag{"use-content-type", false, Action::kNote, kOnlyWrites},
    GoofysFlag{"acl", true, Action::kNote, kOnlyWrites},
    GoofysFlag{"sse", false, Action::kNote, "only concerns writing: the store decrypts SSE-S3 objects by itself"},
    GoofysFlag{"sse-kms", true, Action::kNote,
               "only concerns writing: the store decrypts SSE-KMS objects for keys that may use them"},
    GoofysFlag{"sse-c", true, Action::kRefuse,
               "reading with a customer key is not supported; store the objects with SSE-KMS, which needs no flag for reading"},
    GoofysFlag{"iam", false, Action::kRefuse,
               "keys of an instance role are not fetched; put them into the environment (aws configure export-credentials "
               "--format env) or a --profile"},
    GoofysFlag{"iam-header", true, Action::kRefuse,
               "tokens of other clouds are not sent; give the store's S3 keys in the environment or a --profile"},
    GoofysFlag{"log-file", true, Action::kRename, "log"},
    GoofysFlag{"pprof", true, Action::kRefuse, "use --metrics 127.0.0.1:PORT, which serves Prometheus metrics"},
};

const GoofysFlag* find_flag(std::string_view name) {
  const auto it = std::find_if(kFlags.begin(), kFlags.end(), [&](const GoofysFlag& flag) { return flag.name == name; });
  return it == kFlags.end() ? nullptr : &*it;
}

/// Flags of `thermo mount` that are not in the option table.
bool own_switch(std::string_view name) { return name == "foreground"; }
bool asks_for_help(std::string_view name) { return name == "help" || name == "h"; }
bool own_valued(std::string_view name) { return name == "config"; }

std::optional<bool> go_bool(std::string_view text) {
  for (const auto word : {"1", "t", "T", "true", "TRUE", "True"})
    if (text == word) return true;
  for (const auto word : {"0", "f", "F", "false", "FALSE", "False"})
    if (text == word) return false;
  return std::nullopt;
}

class Rewriter {
 public:
  Result<Rewritten> run(std::vector<std::string> words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      if (word == "--") {
        positional_.insert(positional_.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
        break;
      }
      if (word.size() < 2 || word[0] != '-') {
        positional_.push_back(word);
        continue;
      }
      std::string_view name = std::string_view(word).substr(word.starts_with("--") ? 2 : 1);
      std::optional<std::string> value;
      if (const auto equals = name.find('='); equals != std::string_view::npos) {
        value = name.substr(equals + 1);
        name = name.substr(0, equals);
      }
      if (asks_for_help(name)) return Rewritten{{"--help"}, {}};
      const auto* flag = find_flag(name);
      const auto* own = flag == nullptr ? find_option(name) : nullptr;
      if (flag == nullptr && own == nullptr && !own_switch(name) && !own_valued(name)) return unknown(word, name);
      const bool valued = flag != nullptr ? flag->takes_value : own != nullptr ? own->kind != Kind::kSwitch : own_valued(name);
      if (valued && !value) {
        if (i + 1 == words.size()) return fail(ErrorCode::kInvalidArgument, fmt::format("{} needs a value", word));
        value = words[++i];
      }
      if (!valued && value) {
        const auto on = go_bool(*value);
        if (!on) return fail(ErrorCode::kInvalidArgument, fmt::format("{}: '{}' is not true or false", word, *value));
        if (!*on) continue;
        value.reset();
      }
      if (flag != nullptr) {
        TRY(apply(*flag, value.value_or("")));
      } else {
        add(name, value);
      }
    }
    return finish();
  }

 private:
  Result<Rewritten> unknown(std::string_view word, std::string_view name) const {
    std::vector<std::string> flags;
    const auto add_flag = [&](std::string_view known) {
      flags.push_back(fmt::format("{}{}", known.size() == 1 ? "-" : "--", known));
    };
    for (const auto known : option_names()) add_flag(known);
    for (const auto& flag : kFlags) add_flag(flag.name);
    const std::vector<std::string_view> known(flags.begin(), flags.end());
    const auto guess = did_you_mean(fmt::format("--{}", name), known);
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("unknown flag '{}'{}", word, guess.empty() ? "; `thermo mount --help` lists them" : guess));
  }

  void add(std::string_view name, const std::optional<std::string>& value) {
    if (name.size() == 1) {
      out_.args.push_back(fmt::format("-{}", name));
      if (value) out_.args.push_back(*value);
    } else {
      out_.args.push_back(value ? fmt::format("--{}={}", name, *value) : fmt::format("--{}", name));
    }
  }

  Result<void> apply(const GoofysFlag& flag, const std::string& value) {
    const std::optional<std::string> given = flag.takes_value ? std::optional(value) : std::nullopt;
    switch (flag.action) {
      case Action::kSame: add(flag.name, given); break;
      case Action::kRename: add(flag.text, given); break;
      case Action::kDuration: {
        auto ours = translate_go_duration(value);
        if (!ours) return fail(ours.error().within(fmt::format("--{}", flag.name)));
        add(flag.text, *ours);
        break;
      }
      case Action::kTtl: {
        auto ours = translate_go_duration(value);
        if (!ours) return fail(ours.error().within(fmt::format("--{}", flag.name)));
        const Nanos ttl = *parse_duration(*ours);
        ttl_ = ttl_ ? std::min(*ttl_, ttl) : ttl;
        break;
      }
      case Action::kCatfs: return catfs(value);
      case Action::kNote: out_.notes.push_back(fmt::format("--{} {}", flag.name, flag.text)); break;
      case Action::kRefuse: return fail(ErrorCode::kInvalidArgument, fmt::format("--{}: {}", flag.name, flag.text));
    }
    return {};
  }

  /// "--free:10%:/var/cache": flags of catfs, then the folder.
  Result<void> catfs(const std::string& value) {
    const auto colon = value.rfind(':');
    const std::string folder = colon == std::string::npos ? value : value.substr(colon + 1);
    if (folder.empty()) return fail(ErrorCode::kInvalidArgument, fmt::format("--cache '{}' names no folder", value));
    if (colon != std::string::npos) {
      out_.notes.push_back(fmt::format("--cache: '{}' is meant for catfs and does nothing here; --cache-size limits the cache",
                                       value.substr(0, colon)));
    }
    add("cache", folder);
    return {};
  }

  Result<Rewritten> finish() {
    if (positional_.size() != 2) {
      std::string got;
      for (const auto& word : positional_) got += fmt::format("{}'{}'", got.empty() ? "" : ", ", word);
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("need a bucket and a mount point, got {}; `thermo --help` shows the commands",
                              got.empty() ? "neither" : got));
    }
    if (ttl_) {
      // In goofys 0 means "never from memory": strict here.
      if (ttl_->count() == 0) {
        add("ttl", "strict");
      } else {
        add("ttl", fmt::format("{}ns", ttl_->count()));
      }
    }
    TRY_ASSIGN(const StoreUrl url, parse_store_url(positional_[0], true));
    out_.args.emplace_back("--");
    out_.args.push_back(url.text());
    out_.args.push_back(positional_[1]);
    return std::move(out_);
  }

  Rewritten out_;
  std::vector<std::string> positional_;
  std::optional<Nanos> ttl_;
};

/// mount.fuse adds "dev,suid" for root without being asked; a mount here has neither, so that there is nothing to refuse.
std::string without_dev_suid(std::string_view list) {
  std::string out;
  while (!list.empty()) {
    const auto comma = list.find(',');
    const auto word = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    if (word == "dev" || word == "suid") continue;
    if (!out.empty()) out += ',';
    out += word;
  }
  return out;
}

/// Takes the flags out of every -o list, so that the rewriter sees one kind of flag only.
std::vector<std::string> lift_all(std::span<const std::string> args) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < args.size(); ++i) {
    std::string list;
    if (args[i] == "--") {
      words.insert(words.end(), args.begin() + static_cast<std::ptrdiff_t>(i), args.end());
      break;
    }
    if (args[i] == "-o" && i + 1 < args.size()) {
      list = args[++i];
    } else if (args[i].starts_with("-o=")) {
      list = args[i].substr(3);
    } else {
      words.push_back(args[i]);
      continue;
    }
    auto lifted = lift_options(without_dev_suid(list));
    words.insert(words.end(), lifted.flags.begin(), lifted.flags.end());
    if (!lifted.words.empty()) {
      words.emplace_back("-o");
      words.push_back(std::move(lifted.words));
    }
  }
  return words;
}

}  // namespace

Result<Rewritten> rewrite_goofys(std::span<const std::string> args) { return Rewriter().run(lift_all(args)); }

LiftedOptions lift_options(std::string_view list) {
  LiftedOptions out;
  std::string word;
  const auto flush = [&] {
    if (word.empty()) return;
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto* spec = word[0] == '-' ? nullptr : find_option(name);
    if (word[0] == '-') {
      out.flags.push_back(word);
    } else if (spec != nullptr && spec->name != "o" && (equals != std::string::npos || spec->kind == Kind::kSwitch)) {
      out.flags.push_back(fmt::format("--{}{}", spec->name, equals == std::string::npos ? "" : word.substr(equals)));
    } else {
      out.words += (out.words.empty() ? "" : ",") + word;
    }
    word.clear();
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '\\' && i + 1 < list.size() && list[i + 1] == ',') {
      word += list[++i];
    } else if (list[i] == ',') {
      flush();
    } else {
      word += list[i];
    }
  }
  flush();
  return out;
}

Result<HelperCall> parse_mount_helper(std::span<const std::string> args) {
  HelperCall call;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& word = args[i];
    if (word == "-o" || word == "-t" || word == "-N") {
      if (i + 1 == args.size()) return fail(ErrorCode::kInvalidArgument, fmt::format("{} needs a value", word));
      const std::string& value = args[++i];
      if (word == "-o") {
        call.args.emplace_back("-o");
        call.args.push_back(value);
      } else if (word == "-N") {
        return fail(ErrorCode::kInvalidArgument, "mount -N (another namespace) is not supported; use nsenter");
      }
      continue;
    }
    const bool switches = word.size() > 1 && word[0] == '-' && word.find_first_not_of("sfnv", 1) == std::string::npos;
    if (!switches) {
      call.args.push_back(word);
    } else if (word.find('f') != std::string::npos) {
      call.fake = true;
    }
  }
  return call;
}

Result<std::string> translate_go_duration(std::string_view text) {
  if (text == "0") return "0ns";
  Nanos total{0};
  std::string_view rest = text;
  bool ok = !rest.empty();
  while (ok && !rest.empty()) {
    const auto unit = rest.find_first_not_of("0123456789.");
    if (unit == 0 || unit == std::string_view::npos) {
      ok = false;
      break;
    }
    auto end = rest.find_first_of("0123456789.", unit);
    if (end == std::string_view::npos) end = rest.size();
    const auto part = parse_duration(rest.substr(0, end));
    // The sum must be a duration that parse_duration() takes again.
    ok = part && rest.substr(unit, end - unit) != "d" && part->count() < (std::int64_t{1} << 61) - total.count();
    if (ok) total += *part;
    rest.remove_prefix(end);
  }
  if (!ok)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("'{}' is not a duration; write a number and one of ms, s, m, h, such as 1m30s", text));
  return fmt::format("{}ns", total.count());
}

}  // namespace thermo::app
