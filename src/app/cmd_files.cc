#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/cmd.h"
#include "base/units.h"
#include "front/admin/protocol.h"
#include "net/sigv4.h"

namespace thermo::app {
namespace {

using nlohmann::json;

constexpr auto kPatience = std::chrono::minutes(2);

/// What one request asks at most, so that it and its answer fit into a line of the socket (4 MiB), bytes grown threefold by
/// encoding. The answer to `stat` has each path three times, and for the longest prefix 6 KiB more of it.
struct Batch {
  std::size_t paths = 0;
  std::size_t bytes = 0;
};
constexpr Batch kStatBatch{250, 128 << 10};
constexpr Batch kTreeBatch{100'000, 1 << 20};

std::string share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "100%" : fmt::format("{}%", part * 100 / whole);
}

std::string when(std::int64_t ns) {
  const std::time_t seconds = ns / 1'000'000'000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

std::uint64_t number(const json& value, const char* name) { return value.value(name, std::uint64_t{0}); }

Result<json> ask(const PathGroup& group, const char* command, const admin::ProgressSink& progress) {
  TRY_ASSIGN(const auto client, admin::connect_client(group.mount.admin.socket));
  return client->call(path_request(command, group), {}, progress, kPatience);
}

/// The paths of `group`, cut up.
std::vector<PathGroup> batches(const PathGroup& group, const Batch& most) {
  std::vector<PathGroup> cut;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < group.given.size(); ++i) {
    const std::size_t size = group.relative[i].size();
    if (cut.empty() || cut.back().given.size() >= most.paths || bytes + size > most.bytes) {
      cut.push_back({group.mount, {}, {}});
      bytes = 0;
    }
    cut.back().given.push_back(group.given[i]);
    cut.back().relative.push_back(group.relative[i]);
    bytes += size;
  }
  return cut;
}

/// Adds the answer about one batch to that about those before it.
void add(json& sum, const json& answer) {
  if (sum.is_null()) sum = json::object();
  for (const auto& [name, value] : answer.items()) {
    auto& total = sum[name];
    if (value.is_array()) {
      if (total.is_null()) total = json::array();
      total.insert(total.end(), value.begin(), value.end());
    } else {
      total = (total.is_null() ? 0 : total.get<std::uint64_t>()) + value.get<std::uint64_t>();
    }
  }
}

void print(const json& value) { std::cout << admin::to_text(value, 2) << '\n'; }

void print_stat(const json& entry, const std::string& given) {
  fmt::print("  path: {}\n store: {}\n", given, plain(entry.at("store")));
  if (entry.at("type") != "file") {
    fmt::print("  type: folder\n   ino: {}\n", number(entry, "ino"));
    return;
  }
  const auto size = number(entry, "size");
  fmt::print("  size: {} ({})\n  etag: {}\n mtime: {}\n   ver: {}\ncached: {} of {} bytes ({})\n   ino: {}  generation {}\n",
             size, format_size(size), entry.value("etag", ""), when(entry.value("mtime_ns", std::int64_t{0})),
             entry.value("version", ""), number(entry, "resident"), size, share(number(entry, "resident"), size),
             number(entry, "ino"), number(entry, "generation"));
}

void print_name(const json& entry) {
  const std::string name = plain(entry.at("name"));
  if (entry.at("type") == "file") {
    const auto size = number(entry, "size");
    std::cout << fmt::format("{:>14}  {:>4}  {:<36}  {}\n", size, share(number(entry, "resident"), size), entry.value("etag", ""),
                             name);
  } else {
    std::cout << fmt::format("{:>14}  {:>4}  {:<36}  {}/\n", "-", "-", "-", name);
  }
}

/// A bar on a terminal, a line per 10 % elsewhere.
class ProgressBar {
 public:
  void show(const json& now) {
    const auto bytes = number(now, "bytes");
    const auto done = std::min(number(now, "bytes_done"), bytes);
    const auto percent = bytes == 0 ? 100 : done * 100 / bytes;
    const std::string line = fmt::format("{:>3}%  {} of {}  {} of {} files", percent, format_size(done), format_size(bytes),
                                         number(now, "files_done"), number(now, "files"));
    if (terminal_) {
      const auto filled = percent * kWidth / 100;
      std::cerr << '\r' << '[' << std::string(filled, '#') << std::string(kWidth - filled, ' ') << "] " << line << "\x1b[K"
                << std::flush;
      drawn_ = true;
    } else if (percent / 10 > last_) {
      last_ = percent / 10;
      std::cerr << line << '\n';
    }
  }
  void end() {
    if (drawn_) std::cerr << "\r\x1b[K" << std::flush;
  }

 private:
  static constexpr std::size_t kWidth = 30;
  const bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  bool drawn_ = false;
  std::uint64_t last_ = 0;
};

}  // namespace

Result<std::vector<PathGroup>> group_paths(const std::vector<std::string>& paths) {
  std::vector<PathGroup> groups;
  for (const auto& path : paths) {
    TRY_ASSIGN(auto located, locate(path));
    auto it =
        std::find_if(groups.begin(), groups.end(), [&](const PathGroup& group) { return group.mount.admin == located.admin; });
    if (it == groups.end()) it = groups.insert(groups.end(), PathGroup{located, {}, {}});
    it->given.push_back(path);
    it->relative.push_back(located.relative);
  }
  return groups;
}

json path_request(const char* command, const PathGroup& group) {
  json paths = json::array();
  for (const auto& path : group.relative) paths.push_back(net::uri_encode(path, true));
  return {{"command", command}, {"mount", group.mount.admin.mount_id}, {"paths", std::move(paths)}};
}

std::string plain(const json& armoured) {
  if (!armoured.is_string()) return {};
  const auto& text = armoured.get_ref<const std::string&>();
  return net::uri_decode(text).value_or(text);
}

void make_plain(json& value) {
  if (value.is_array()) {
    for (auto& item : value) make_plain(item);
  } else if (value.is_object()) {
    for (const char* name : {"name", "key", "store"})
      if (const auto it = value.find(name); it != value.end()) *it = plain(*it);
    for (auto& [name, item] : value.items())
      if (item.is_structured()) make_plain(item);
  }
}

Result<void> cmd_stat(const Invocation& invocation) {
  TRY_ASSIGN(const auto groups, group_paths(invocation.positional));
  json all = json::array();
  for (const auto& group : groups) {
    for (const auto& batch : batches(group, kStatBatch)) {
      TRY_ASSIGN(auto answer, ask(batch, "stat", {}));
      auto& entries = answer.at("entries");
      for (std::size_t i = 0; i < entries.size() && i < batch.given.size(); ++i) {
        if (!invocation.json) print_stat(entries[i], batch.given[i]);
        make_plain(entries[i]);
        entries[i]["path"] = batch.given[i];
        all.push_back(entries[i]);
      }
    }
  }
  if (invocation.json) print(all);
  return {};
}

Result<void> cmd_ls(const Invocation& invocation) {
  TRY_ASSIGN(const auto groups, group_paths(invocation.positional));
  json all = json::array();
  for (const auto& group : groups) {
    const auto show = [&](const json& progress) {
      for (auto entry : progress.at("entries")) {
        if (invocation.json) {
          make_plain(entry);
          all.push_back(std::move(entry));
        } else {
          print_name(entry);
        }
      }
    };
    std::uint64_t skipped = 0;  // of the mount, as of now
    for (const auto& batch : batches(group, kTreeBatch)) {
      TRY_ASSIGN(const auto answer, ask(batch, "ls", show));
      skipped = number(answer, "skipped");
    }
    if (skipped > 0) say(fmt::format("note: {} keys of this mount cannot be shown as file names", skipped));
  }
  if (invocation.json) print(all);
  return {};
}

Result<void> cmd_load(const Invocation& invocation) {
  TRY_ASSIGN(const auto groups, group_paths(invocation.positional));
  json all = json::array();
  std::uint64_t failed = 0;
  std::string first;
  for (const auto& group : groups) {
    ProgressBar bar;
    const auto begin = Clock::system().now();
    json answer;
    for (const auto& batch : batches(group, kTreeBatch)) {
      auto part = ask(batch, "load", [&](json now) {
        if (invocation.json) return;
        now["files_done"] = number(now, "files_done") + (answer.is_null() ? 0 : number(answer, "files"));
        for (const char* name : {"files", "bytes", "bytes_done"})
          now[name] = number(now, name) + (answer.is_null() ? 0 : number(answer, name));
        bar.show(now);
      });
      bar.end();
      if (!part) return fail(part.error());
      add(answer, *part);
    }
    const auto took = Clock::system().now() - begin;
    for (const auto& failure : answer.at("failures")) {
      const std::string sentence = fmt::format("'{}': {}", plain(failure.at("key")), failure.value("message", ""));
      if (first.empty()) first = sentence;
      if (!invocation.json) say(sentence);
    }
    failed += number(answer, "files_failed");
    if (!invocation.json) {
      fmt::print("{} files, {}: {} were there already; {}\n", number(answer, "files"), format_size(number(answer, "bytes")),
                 format_size(number(answer, "bytes_present")), format_duration(took));
    }
    make_plain(answer);
    answer["mount_point"] = group.mount.root;
    answer["seconds"] = std::chrono::duration<double>(took).count();
    all.push_back(std::move(answer));
  }
  if (invocation.json) print(all);
  if (failed > 0) return fail(ErrorCode::kIo, fmt::format("{} files were not loaded; the first: {}", failed, first));
  return {};
}

Result<void> cmd_free(const Invocation& invocation) {
  TRY_ASSIGN(const auto groups, group_paths(invocation.positional));
  json all = json::array();
  for (const auto& group : groups) {
    json answer;
    for (const auto& batch : batches(group, kTreeBatch)) {
      TRY_ASSIGN(const auto part, ask(batch, "free", {}));
      add(answer, part);
    }
    if (!invocation.json) fmt::print("freed {} of {} files\n", format_size(number(answer, "bytes")), number(answer, "files"));
    answer["mount_point"] = group.mount.root;
    all.push_back(std::move(answer));
  }
  if (invocation.json) print(all);
  return {};
}

Result<void> cmd_debug(const Invocation& invocation) {
  const auto& args = invocation.positional;
  if (args.at(2) != "on" && args.at(2) != "off")
    return fail(ErrorCode::kInvalidArgument, fmt::format("'{}' is neither on nor off", args.at(2)));
  TRY_ASSIGN(const auto located, locate(args.at(0)));
  TRY_ASSIGN(const auto client, admin::connect_client(located.admin.socket));
  TRY_ASSIGN(const auto answer,
             client->call({{"command", "debug"}, {"channel", args.at(1)}, {"on", args.at(2) == "on"}}, {}, {}, kPatience));
  return {};
}

}  // namespace thermo::app
