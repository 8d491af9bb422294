#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "app/cmd.h"
#include "base/units.h"
#include "front/admin/protocol.h"
#include "front/fuse/mount_table.h"

namespace thermo::app {
namespace {

using nlohmann::json;

constexpr auto kPatience = std::chrono::seconds(30);

std::uint64_t number(const json& value, const char* name) { return value.value(name, std::uint64_t{0}); }

std::string seconds(const json& value) {
  return format_duration(Nanos(static_cast<std::int64_t>(value.value("up_seconds", 0.0) * 1e9)));
}

void print_status(const json& status) {
  const auto& daemon = status.at("daemon");
  const auto& cache = status.at("cache");
  const auto& memory = status.at("memory");
  const auto& traffic = status.at("traffic");
  fmt::print("daemon   thermo {} ({}), process {}, up {}\n", daemon.value("version", ""), daemon.value("commit", ""),
             number(daemon, "pid"), seconds(daemon));
  if (daemon.at("metrics").is_string()) fmt::print("metrics  {}\n", daemon.at("metrics").get<std::string>());
  fmt::print("cache    {}: {} of {} used, {} objects, device {}{}\n", cache.value("folder", ""),
             format_size(number(cache, "used")), format_size(number(cache, "limit")), number(cache, "objects"),
             cache.value("device", ""),
             cache.value("device_reason", "").empty() ? "" : " (" + cache.value("device_reason", "") + ")");
  fmt::print("memory   {} private, buffers {} of {}, catalog {}\n", format_size(number(memory.at("process"), "private")),
             format_size(number(memory, "buffers_used")), format_size(number(memory, "buffers_limit")),
             format_size(number(memory, "catalog")));
  std::string line;
  for (const auto& [tier, bytes] : traffic.at("bytes_served").items())
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", tier, format_size(bytes.get<std::uint64_t>()));
  if (traffic.contains("hit_ratio")) line += fmt::format("; hits {:.1f}%", traffic.at("hit_ratio").get<double>() * 100);
  fmt::print("served   {}\n", line.empty() ? "nothing yet" : line);
  line.clear();
  for (const auto& [verb, n] : traffic.at("store_requests").items())
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", verb, n.get<std::uint64_t>());
  fmt::print("store    {}; {} fetched\n", line.empty() ? "no requests" : line, format_size(number(traffic, "bytes_fetched")));
  for (const auto& mount : status.at("mounts")) {
    fmt::print("mount    {} at {}, up {}, {} open files{}\n", mount.value("store", ""), mount.value("mount_point", ""),
               seconds(mount), number(mount, "open_files"),
               number(mount, "skipped_keys") == 0 ? "" : fmt::format(", {} keys not shown", number(mount, "skipped_keys")));
  }
}

/// Sockets of the daemons to ask: of the path's mount, or of every mount and of the cache folder in the settings.
Result<std::set<std::string>> sockets_for(const Invocation& invocation) {
  std::set<std::string> sockets;
  if (!invocation.positional.empty()) {
    TRY_ASSIGN(const auto located, locate(invocation.positional.front()));
    sockets.insert(located.admin.socket);
    return sockets;
  }
  for (const auto& mount : fuse::list_thermo_mounts()) {
    if (auto located = locate(mount.path)) {
      sockets.insert(located->admin.socket);
    } else if (located.error().code() == ErrorCode::kStale) {
      say(std::string(located.error().message()));
    } else if (located.error().code() == ErrorCode::kAccessDenied) {
      say(fmt::format("note: the mount at '{}' lets only its own user in and is not shown", mount.path));
    }
  }
  TRY_ASSIGN(const auto folder, cache_folder(invocation.settings));
  if (::access(socket_path(folder).c_str(), F_OK) == 0) sockets.insert(socket_path(folder));
  return sockets;
}

}  // namespace

Result<void> cmd_status(const Invocation& invocation) {
  TRY_ASSIGN(const auto sockets, sockets_for(invocation));
  json all = json::array();
  for (const auto& socket : sockets) {
    auto client = admin::connect_client(socket);
    if (!client) {
      if (!invocation.positional.empty()) return fail(client.error());
      say(std::string(client.error().message()));
      continue;
    }
    TRY_ASSIGN(auto status, (*client)->call({{"command", "status"}, {"metrics", invocation.metrics}}, {}, {}, kPatience));
    if (!invocation.json) {
      if (!all.empty()) fmt::print("\n");
      print_status(status);
    }
    all.push_back(std::move(status));
  }
  // One path names one daemon: then there is no list around it.
  if (invocation.json) std::cout << admin::to_text(!invocation.positional.empty() && all.size() == 1 ? all[0] : all, 2) << '\n';
  if (all.empty() && !invocation.json) fmt::print("no daemon is running\n");
  return {};
}

admin::UniqueFd process_of(const admin::Client& client) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(client.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.pid <= 0) return {};
  return admin::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0)));
}

bool wait_for_end(const admin::UniqueFd& process, Millis patience) {
  if (!process.valid()) return true;  // gone already, or in another namespace
  pollfd p{process.get(), POLLIN, 0};
  return ::poll(&p, 1, static_cast<int>(patience.count())) > 0;
}

}  // namespace thermo::app
