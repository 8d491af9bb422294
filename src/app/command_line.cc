#include "app/command_line.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <deque>
#include <sstream>

#include "app/config_file.h"
#include "app/goofys.h"
#include "app/nearest.h"
#include "app/store_url.h"
#include "app/version.h"
#include "front/fuse/mount_options.h"

namespace thermo::app {
namespace {

constexpr std::array<std::pair<std::string_view, Command>, 11> kCommands{{{"mount", Command::kMount},
                                                                          {"umount", Command::kUmount},
                                                                          {"daemon", Command::kDaemon},
                                                                          {"status", Command::kStatus},
                                                                          {"stat", Command::kStat},
                                                                          {"ls", Command::kLs},
                                                                          {"load", Command::kLoad},
                                                                          {"free", Command::kFree},
                                                                          {"debug", Command::kDebug},
                                                                          {"config", Command::kConfig},
                                                                          {"s3sim", Command::kS3sim}}};

constexpr const char* kAbout =
    "Thermocline mounts S3 buckets and folders as local folders, with a verified cache on local disk.\n"
    "  thermo mount s3://bucket/prefix /mnt/t --endpoint http://127.0.0.1:8333\n"
    "  thermo mount file:///srv/tables /mnt/t\n"
    "  thermo [goofys flags] bucket[:prefix] /mnt/t";

/// One parse: the CLI11 objects and the variables they write to.
class Parser {
 public:
  Parser() : app_(kAbout, "thermo") {
    app_.set_version_flag("-v,--version", fmt::format("thermo {} ({})", version(), commit()), "version and commit");
    app_.require_subcommand(1);
    // CLI11's own grouping of subcommands, by what people come for.
    mount_ = add("mount", "mount a store: STORE is s3://bucket[/prefix] or file:///folder", "Mounts");
    add("umount", "unmount, and wait until the daemon is done with it", "Mounts");
    daemon_ = add("daemon", "serve a cache folder until told to end; mounts attach to it", "Mounts");
    add("status", "daemons, mounts, cache and traffic", "Seeing");
    add("stat", "what a file or folder is in the store and how much of it is cached", "Seeing");
    add("ls", "names with size, cached share and ETag", "Seeing");
    add("debug", "switch the log lines of each request on or off", "Seeing");
    add("config", "the options as they would be used, as a config file", "Seeing");
    add("load", "bring files into the cache", "Cache");
    add("free", "drop files from the cache (never from the store)", "Cache");
    add("s3sim", "a stand-in for an S3 server, for tests and demos only", "Testing");
    for (const auto& [name, command] : kCommands) flags(command);
  }

  Result<Invocation> parse(std::span<const std::string> args) {
    TRY(check_flags(args));
    std::vector<std::string> reversed(args.rbegin(), args.rend());
    try {
      app_.parse(reversed);
    } catch (const CLI::Success& e) {
      std::ostringstream out;
      app_.exit(e, out, out);
      Invocation shown;
      shown.text = out.str();
      return shown;
    } catch (const CLI::ParseError& e) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}; `thermo {}--help` shows how", e.what(), used().empty() ? "" : used() + " "));
    }
    TRY(fill());
    return std::move(out_);
  }

 private:
  CLI::App* add(std::string_view name, const char* about, const char* group) {
    auto* sub = app_.add_subcommand(std::string(name), about);
    sub->group(group);
    return subs_[std::string(name)] = sub;
  }

  [[nodiscard]] std::string used() const {
    for (const auto& [name, sub] : subs_)
      if (sub->parsed()) return name;
    return {};
  }

  /// The first flag of a command that it does not have, or that lacks its value: CLI11 would take the next flag for the value, or
  /// complain about the words around it.
  Result<void> check_flags(std::span<const std::string> args) const {
    const auto sub = args.empty() ? subs_.end() : subs_.find(args[0]);
    if (sub == subs_.end()) return {};
    std::map<std::string, const CLI::Option*, std::less<>> known;
    for (const auto* option : sub->second->get_options()) {
      for (const auto& text : option->get_lnames()) known.emplace("--" + text, option);
      for (const auto& text : option->get_snames()) known.emplace("-" + text, option);
    }
    for (std::size_t i = 1; i < args.size() && args[i] != "--"; ++i) {
      const std::string_view flag = std::string_view(args[i]).substr(0, args[i].find('='));
      const auto it = known.find(flag);
      if (it == known.end()) {
        if (!flag.starts_with("--")) continue;  // a word, or letters that CLI11 takes apart
        std::vector<std::string_view> names;
        for (const auto& [name, option] : known) names.push_back(name);
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("`thermo {}` has no flag '{}'{}", args[0], flag, did_you_mean(flag, names)));
      }
      if (it->second->get_items_expected_max() == 0 || flag.size() < args[i].size()) continue;
      ++i;
      if (i == args.size() || known.find(args[i]) != known.end())
        return fail(ErrorCode::kInvalidArgument, fmt::format("{} needs a value; `thermo {} --help` shows how", flag, args[0]));
    }
    return {};
  }

  void flags(Command command) {
    switch (command) {
      case Command::kMount:
        words(mount_, {{"STORE", "s3://bucket[/prefix] or file:///folder"}, {"MOUNTPOINT", "an existing empty folder"}});
        mount_->add_flag("-f,--foreground", out_.foreground, "stay in the foreground, log to stderr; Ctrl-C unmounts");
        config_flag(mount_);
        table(mount_, kMountScope);
        break;
      case Command::kDaemon:
        config_flag(daemon_);
        daemon_->add_flag("--ends-when-idle", out_.ends_when_idle)->group("");
        daemon_->add_option("--status-fd", out_.status_fd)->group("");
        table(daemon_, kDaemonScope);
        break;
      case Command::kUmount:
        words(subs_["umount"], {{"MOUNTPOINT", "what to unmount"}});
        subs_["umount"]->add_flag("-l,--lazy", out_.lazy, "detach now, even when programs use it");
        json_flag(subs_["umount"]);
        break;
      case Command::kStatus:
        paths(subs_["status"], "a path in a mount (default: the daemons of all mounts and of --cache)", false);
        json_flag(subs_["status"]);
        subs_["status"]->add_flag("--metrics", out_.metrics, "all counters too (with --json)");
        config_flag(subs_["status"]);
        one(subs_["status"], *find_option("cache"));
        break;
      case Command::kStat:
      case Command::kLs:
      case Command::kLoad:
      case Command::kFree: {
        auto* sub = subs_[name_of(command)];
        paths(sub, "files and folders in a mount", true);
        json_flag(sub);
        break;
      }
      case Command::kDebug:
        words(subs_["debug"], {{"PATH", "a path in a mount"}, {"CHANNEL", "fuse or s3"}, {"STATE", "on or off"}});
        break;
      case Command::kConfig:
        subs_["config"]->add_flag("--print", print_, "print them (the default)");
        config_flag(subs_["config"]);
        table(subs_["config"], kBothScopes);
        break;
      case Command::kS3sim: s3sim(subs_["s3sim"]); break;
      case Command::kShow: break;
    }
  }

  static std::string name_of(Command wanted) {
    for (const auto& [name, command] : kCommands)
      if (command == wanted) return std::string(name);
    return {};
  }

  /// One word each, all required.
  void words(CLI::App* sub, std::initializer_list<std::pair<const char*, const char*>> names) {
    for (const auto& [name, about] : names) sub->add_option(name, words_.emplace_back(), about)->required()->option_text(" ");
  }
  void paths(CLI::App* sub, const char* about, bool required) {
    auto* option = sub->add_option("PATH", out_.positional, about)->option_text(" ");
    if (required) {
      option->required();
    } else {
      option->expected(0, 1);
    }
  }
  void json_flag(CLI::App* sub) { sub->add_flag("--json", out_.json, "answer as JSON"); }
  void config_flag(CLI::App* sub) {
    sub->add_option("--config", config_,
                    "TOML file with the same options (default: /etc/thermo/thermo.toml, then ~/.config/thermo/thermo.toml)")
        ->type_name("FILE");
  }

  void table(CLI::App* sub, unsigned scope) {
    for (const auto& spec : option_table())
      if ((spec.scope & scope) != 0) one(sub, spec);
  }

  void one(CLI::App* sub, const OptionSpec& spec) {
    std::string names = spec.name.size() == 1 ? fmt::format("-{}", spec.name) : fmt::format("--{}", spec.name);
    if (spec.name.find('_') != std::string_view::npos) {
      std::string dashed(spec.name);
      std::replace(dashed.begin(), dashed.end(), '_', '-');
      names += ",--" + dashed;
    }
    std::string help(spec.help);
    if (spec.kind != Kind::kSwitch && !spec.fallback.empty()) help += fmt::format(" (default: {})", spec.fallback);
    auto& given = given_[{sub, &spec}];
    CLI::Option* option = nullptr;
    if (spec.kind == Kind::kSwitch) {
      option = sub->add_flag(names, given.on, help);
    } else {
      option = sub->add_option(names, given.values, help)->expected(1)->type_name(std::string(spec.metavar));
      option->multi_option_policy(spec.kind == Kind::kWords ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::TakeLast);
      option->allow_extra_args(
          false);  // or `--region eu-west-1 s3://bucket /mnt/t --ttl 1s` would take the store for a region too
    }
    option->group(std::string(spec.group));
    given.option = option;
  }

  void s3sim(CLI::App* sub) {
    auto& a = out_.s3sim;
    sub->add_option("DIR", a.folder, "folder to serve: each sub-folder is a bucket");
    sub->add_flag("--memory", a.memory, "flat keys in memory; buckets are made by CreateBucket");
    sub->add_option("--proxy", a.proxy, "stand in front of this endpoint")->type_name("URL");
    sub->add_option("--address", a.address, "address to listen on (default: 127.0.0.1)")->type_name("ADDRESS");
    sub->add_option("--port", a.port, "port; 0 takes a free one (default: 9000)")->type_name("N")->check(CLI::Range(0, 65535));
    sub->add_option("--first-byte-ms", a.first_byte_ms, "delay before each answer")
        ->type_name("MS")
        ->check(CLI::Range(0.0, 600000.0));
    sub->add_option("--per-connection", a.per_connection, "bandwidth of each connection, such as 90MB/s")->type_name("RATE");
    sub->add_option("--total", a.total, "bandwidth of all connections together")->type_name("RATE");
    sub->add_option("--faults", a.faults, "what goes wrong and how often")->type_name("SPEC");
    sub->add_option("--seed", a.seed, "decides every fault (default: 1)")->type_name("N");
    sub->add_option("--access-key", a.access_keys, "check signatures against this key; repeatable")
        ->type_name("ID:SECRET")
        ->expected(1)
        ->take_all()
        ->allow_extra_args(false);
    sub->add_option("--region", a.region, "with --access-key: the only region accepted")->type_name("NAME");
    sub->add_option("--clock-offset", a.clock_offset, "the server's clock against this machine's, such as 20m or -20m")
        ->type_name("TIME");
    sub->add_option("--tls-cert", a.tls_certificate, "serve https with this certificate (PEM)")->type_name("FILE");
    sub->add_option("--tls-key", a.tls_key, "its key (PEM)")->type_name("FILE");
    sub->add_option("--ready-file", a.ready_file, "write the endpoint's URL there once it listens")->type_name("FILE");
  }

  Result<void> fill() {
    const auto name = used();
    for (const auto& [command_name, command] : kCommands)
      if (command_name == name) out_.command = command;
    for (const auto& word : words_)
      if (!word.empty()) out_.positional.push_back(word);
    const bool takes_config = out_.command == Command::kMount || out_.command == Command::kDaemon ||
                              out_.command == Command::kConfig || out_.command == Command::kStatus;
    if (takes_config) TRY(load_config(config_, out_.settings));
    for (const auto& [key, given] : given_) {
      const auto& [sub, spec] = key;
      if (!sub->parsed() || given.option->count() == 0) continue;
      const std::string where = fmt::format("{}{}", spec->name.size() == 1 ? "-" : "--", spec->name);
      if (spec->kind == Kind::kSwitch) {
        auto kept = out_.settings.set(*spec, given.on ? "true" : "false", Settings::Source::kFlag, where);
        if (!kept) return kept;
      }
      for (const auto& value : given.values) {
        auto kept = out_.settings.set(*spec, value, Settings::Source::kFlag, where);
        if (!kept) return kept;
      }
    }
    if (out_.command == Command::kMount) {
      // Checked here, so that what is only mistyped ends as usage and touches nothing.
      auto store = parse_store_url(out_.positional.at(0), false);
      if (!store) return fail(store.error());
      auto options = fuse::parse_mount_options(out_.settings.text("o"));
      if (!options) return fail(options.error());
      if (!out_.foreground && out_.settings.text("log") == "stderr")
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("{}: nobody reads stderr in the background; give a file or syslog, or stay in the foreground with -f",
                        out_.settings.origin("log")));
    }
    return {};
  }

  struct Given {
    bool on = false;
    std::vector<std::string> values;
    CLI::Option* option = nullptr;
  };

  Invocation out_;
  std::string config_;
  bool print_ = true;
  std::deque<std::string> words_;  // stay where they are: CLI11 keeps pointers
  CLI::App app_;
  std::map<std::string, CLI::App*> subs_;
  std::map<std::pair<CLI::App*, const OptionSpec*>, Given> given_;
  CLI::App* mount_ = nullptr;
  CLI::App* daemon_ = nullptr;
};

bool is_command(std::string_view word) {
  return std::any_of(kCommands.begin(), kCommands.end(), [&](const auto& entry) { return entry.first == word; });
}

/// The command that a word was meant to be, or nothing.
std::string_view mistyped(std::string_view word, std::size_t most) {
  std::vector<std::string_view> known;
  for (const auto& [command, value] : kCommands) known.push_back(command);
  return nearest(word, known, most);
}

Result<Invocation> unknown_command(std::string_view word, std::string_view meant) {
  const auto guess = meant.empty() ? std::string("; `thermo --help` lists them") : fmt::format("; did you mean '{}'?", meant);
  return fail(ErrorCode::kInvalidArgument, fmt::format("unknown command '{}'{}", word, guess));
}

bool is_missing(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

/// Words that belong to the program itself and not to goofys' form.
bool is_own_flag(std::string_view word) { return word == "-v" || word == "--version" || word == "-h" || word == "--help"; }

Result<Invocation> parse_bare(std::span<const std::string> args) {
  TRY_ASSIGN(auto rewritten, rewrite_goofys(args));
  std::vector<std::string> words{"mount"};
  words.insert(words.end(), rewritten.args.begin(), rewritten.args.end());
  TRY_ASSIGN(auto invocation, Parser().parse(words));
  invocation.notes = std::move(rewritten.notes);
  return invocation;
}

}  // namespace

Result<Invocation> parse_command_line(const std::string& program, std::span<const std::string> args) {
  const std::string name = program.substr(program.rfind('/') + 1);
  if (name.starts_with("mount.")) {
    TRY_ASSIGN(const auto helper, parse_mount_helper(args));
    TRY_ASSIGN(auto invocation, parse_bare(helper.args));
    if (helper.fake) {
      invocation = Invocation();
      invocation.command = Command::kShow;
    }
    return invocation;
  }
  if (args.empty() || is_own_flag(args[0])) {
    const std::vector<std::string> words = args.empty() ? std::vector<std::string>{"--help"} : std::vector<std::string>{args[0]};
    return Parser().parse(words);
  }
  if (is_command(args[0])) {
    if (args[0] != "mount") return Parser().parse(args);
    // `-o uid=9001` is understood in every form.
    std::vector<std::string> words;
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (args[i] != "-o" || i + 1 == args.size()) {
        words.push_back(args[i]);
        continue;
      }
      auto lifted = lift_options(args[++i]);
      words.insert(words.end(), lifted.flags.begin(), lifted.flags.end());
      if (!lifted.words.empty()) words.insert(words.end(), {"-o", lifted.words});
    }
    return Parser().parse(words);
  }
  // "statsu" alone, or "mout BUCKET FOLDER", is a mistyped command rather than a bucket; "umuont FOLDER" could be either.
  if (args[0].starts_with('-')) return parse_bare(args);
  if (args.size() == 1) return unknown_command(args[0], mistyped(args[0], 2));
  const auto meant = mistyped(args[0], 1);
  if (meant.empty()) return parse_bare(args);
  auto bare = parse_bare(args);
  if (bare && bare->command != Command::kMount) return bare;
  if (!bare || is_missing(bare->positional.at(1))) return unknown_command(args[0], meant);
  bare->notes.push_back(fmt::format("'{}' is taken for a bucket; the command is `thermo {}`", args[0], meant));
  return bare;
}

}  // namespace thermo::app
