#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "app/cmd.h"
#include "app/daemon_process.h"
#include "app/mount_spec.h"
#include "app/store_url.h"
#include "base/log.h"
#include "base/units.h"
#include "front/fuse/mount.h"

namespace thermo::app {
namespace {

using nlohmann::json;

constexpr auto kPreparePatience = std::chrono::seconds(30);
constexpr auto kAttachPatience = std::chrono::seconds(30);
constexpr auto kDaemonPatience = std::chrono::seconds(15);

struct Attached {
  std::unique_ptr<admin::Client> client;
  pid_t child = -1;  ///< the daemon, when it is a foreground child of ours
  json prepared;
};

/// Finds or starts the daemon of the cache and lets it check the store. Two `thermo mount` at once, or one while the last daemon
/// is still ending, meet here: whoever loses the race for the cache's lock tries the winner's socket again.
Result<Attached> reach_daemon(const Invocation& invocation, const std::string& folder, const json& request) {
  const MonoTime until = Clock::system().now() + kDaemonPatience;
  Attached attached;
  for (;;) {
    auto client = admin::connect_client(socket_path(folder));
    std::optional<Error> trouble;
    if (client) {
      auto answer = (*client)->call(request, {}, {}, kPreparePatience);
      if (answer) {
        attached.client = std::move(*client);
        attached.prepared = std::move(*answer);
        return attached;
      }
      // It ended under us: start another one. All else is about this mount.
      const auto code = answer.error().code();
      const bool ended = code == ErrorCode::kCancelled || (code == ErrorCode::kUnavailable && !(*client)->connected());
      if (!ended) return fail(answer.error());
      trouble = answer.error();
    } else if (client.error().code() != ErrorCode::kUnavailable) {
      return fail(client.error());
    } else {
      auto started = start_daemon({folder, invocation.settings, invocation.foreground});
      if (started) {
        if (invocation.foreground) attached.child = started->pid;
        continue;
      }
      if (started.error().code() != ErrorCode::kBusy) return fail(started.error());
      trouble = started.error();
    }
    if (Clock::system().now() >= until) return fail(*trouble);
    std::this_thread::sleep_for(Millis(100));
  }
}

/// Undoes a mount that nobody serves (any more).
void take_back(const std::string& path) {
  if (auto gone = fuse::unmount(path, true); !gone)
    say(fmt::format("cannot take the mount at '{}' back: {}", path, gone.error().message()));
}

/// The mount is there when its root answers.
Result<void> wait_until_it_answers(const std::string& path) {
  struct statfs space{};
  struct stat root{};
  if (::statfs(path.c_str(), &space) != 0 || ::stat(path.c_str(), &root) != 0)
    return fail(errno_error(errno, fmt::format("the new mount at '{}' does not answer", path)));
  return {};
}

/// What a running daemon cannot change for one mount.
void warn_of_ignored(const Settings& settings, const json& prepared) {
  for (const char* name : {"cache-size", "memory", "log", "log-level", "metrics", "connections"}) {
    if (!settings.given(name)) continue;
    if (std::string_view(name) == "memory" && settings.size(name) == prepared.value("memory", std::uint64_t{0})) continue;
    if (std::string_view(name) == "cache-size" && settings.text(name).find('%') == std::string::npos &&
        settings.size(name) == prepared.value("cache_size", std::uint64_t{0}))
      continue;
    say(fmt::format("note: --{} belongs to the daemon, which runs already: its own value stays", name));
  }
}

/// -f: until Ctrl-C, which unmounts, or until the mount has gone.
Result<void> stay(Attached& attached, std::uint64_t id, const std::string& path, int signals) {
  std::thread waiter;
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return fail(errno_error(errno, "pipe"));
  const admin::UniqueFd gone(ends[0]);
  admin::UniqueFd tell(ends[1]);
  waiter = std::thread([&] {
    (void)attached.client->call({{"command", "wait_gone"}, {"mount", id}, {"timeout_ms", -1}}, {}, {},
                                std::chrono::hours(24 * 3650));
    tell.reset();
  });
  Result<void> result;
  bool lazy = false;
  for (;;) {
    std::array<pollfd, 2> polled{pollfd{signals, POLLIN, 0}, pollfd{gone.get(), POLLIN, 0}};
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) break;
    if (polled[1].revents != 0) break;
    if ((polled[0].revents & POLLIN) == 0) continue;
    signalfd_siginfo info{};
    if (::read(signals, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) continue;
    auto unmounted = fuse::unmount(path, lazy);
    if (!unmounted && !lazy) {
      say(fmt::format("{}; detaching it, its users get errors from here on", unmounted.error().message()));
      lazy = true;
      unmounted = fuse::unmount(path, true);
    }
    if (!unmounted) result = fail(unmounted.error());
  }
  waiter.join();
  if (attached.child > 0) ::waitpid(attached.child, nullptr, 0);
  return result;
}

}  // namespace

Result<void> cmd_mount(const Invocation& invocation) {
  const Settings& settings = invocation.settings;
  for (const auto& note : invocation.notes) say("note: " + note);
  log::set_level(log::Level::kError);  // what matters is said here in sentences; the daemon has its own log
  TRY_ASSIGN(const auto url, parse_store_url(invocation.positional.at(0), false));
  TRY_ASSIGN(const auto options, fuse::parse_mount_options(settings.text("o")));

  // A mount that a dead daemon left there goes first: its folder answers nothing, not even to realpath.
  TRY_ASSIGN(const bool cleared, fuse::clear_dead_mount(invocation.positional.at(1)));
  if (cleared) say(fmt::format("note: '{}' held a mount whose daemon is dead; it is replaced", invocation.positional.at(1)));
  TRY_ASSIGN(const std::string path, fuse::canonical_mount_path(invocation.positional.at(1)));
  TRY_ASSIGN(const auto spec, make_mount_spec(url, path, settings));
  TRY_ASSIGN(const std::string folder, cache_folder(settings));

  admin::UniqueFd signals;
  if (invocation.foreground) {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    signals.reset(::signalfd(-1, &set, SFD_CLOEXEC));
  }

  const bool ran_before = admin::connect_client(socket_path(folder)).has_value();
  TRY_ASSIGN(auto attached, reach_daemon(invocation, folder, {{"command", "prepare"}, {"spec", to_json(spec)}}));
  if (ran_before) warn_of_ignored(settings, attached.prepared);
  if (attached.prepared.value("empty", false)) say(fmt::format("note: there is nothing at {} yet", url.text()));

  fuse::MountRequest request;
  request.path = path;
  request.source = url.text();
  request.options = options;
  TRY_ASSIGN(auto mounted, fuse::mount_fuse(request));
  if (!mounted.privileged) say("note: mounted through fusermount3: kernel read-ahead stays small and passthrough is off");
  const std::array<int, 1> descriptors{mounted.device.get()};
  auto answer =
      attached.client->call({{"command", "attach"}, {"privileged", mounted.privileged}}, descriptors, {}, kAttachPatience);
  mounted.device.reset();
  if (!answer) {
    take_back(mounted.path);
    return fail(answer.error());
  }
  if (auto answers = wait_until_it_answers(mounted.path); !answers) {
    take_back(mounted.path);
    return answers;
  }
  if (mounted.privileged) {
    if (auto raised = fuse::raise_read_ahead(mounted.path); !raised) say(fmt::format("note: {}", raised.error().message()));
  }
  const auto id = answer->at("mount").get<std::uint64_t>();
  if (!invocation.foreground) return {};
  return stay(attached, id, mounted.path, signals.get());
}

Result<void> cmd_umount(const Invocation& invocation) {
  const std::string& given = invocation.positional.at(0);
  TRY_ASSIGN(const bool dead, fuse::clear_dead_mount(given));
  if (dead) {
    say(fmt::format("note: the mount at '{}' was dead; it is cleared", given));
    return {};
  }
  TRY_ASSIGN(const std::string path, fuse::canonical_mount_path(given));
  const auto mount = fuse::mount_at(path);
  if (!mount || mount->type != fuse::kFsType)
    return fail(ErrorCode::kNotFound,
                fmt::format("nothing of Thermocline is mounted at '{}'; `thermo status` lists the mounts", given));
  // Asked before it is gone; a daemon that does not answer must not keep us from unmounting.
  auto located = locate(path);
  std::unique_ptr<admin::Client> client;
  if (located) {
    if (auto connected = admin::connect_client(located->admin.socket)) client = std::move(*connected);
  }
  TRY(fuse::unmount(path, invocation.lazy));
  if (!client) return {};
  auto gone = client->call({{"command", "wait_gone"}, {"mount", located->admin.mount_id}}, {}, {}, std::chrono::seconds(40));
  if (gone && gone->value("ends", false)) wait_for_exit(*client);
  // A daemon that ended with its last mount may be gone before it answers: that is what was asked for.
  if (!gone && gone.error().code() != ErrorCode::kUnavailable && gone.error().code() != ErrorCode::kCancelled)
    return fail(gone.error());
  return {};
}

Result<void> cmd_daemon(const Invocation& invocation) {
  return run_daemon({invocation.settings, invocation.ends_when_idle, invocation.status_fd});
}

}  // namespace thermo::app
