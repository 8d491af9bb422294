#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "app/cmd.h"
#include "app/daemon_process.h"
#include "app/mount_spec.h"
#include "app/store_url.h"
#include "base/log.h"
#include "base/units.h"
#include "front/admin/protocol.h"
#include "front/fuse/mount.h"

namespace thermo::app {
namespace {

using nlohmann::json;

constexpr auto kPreparePatience = std::chrono::seconds(30);
constexpr auto kAttachPatience = std::chrono::seconds(30);
constexpr auto kDaemonPatience = std::chrono::seconds(15);
constexpr auto kEndPatience = Millis(3000);
/// A mount that nobody uses has gone this soon after it was detached.
constexpr auto kDetachPatience = Millis(500);

/// The daemon that a mount goes to.
struct Attached {
  std::unique_ptr<admin::Client> client;
  json prepared;
  admin::UniqueFd process;  ///< of the daemon, to wait for
  bool started = false;     ///< by us
  pid_t child = -1;         ///< it, when it is a foreground child of ours
};

/// Finds or starts the daemon of the cache and lets it check the store. Two `thermo mount` at once, or one while the last daemon
/// is still ending, meet here: whoever loses the race for the cache's lock tries the winner's socket again.
Result<void> reach_daemon(const Invocation& invocation, const std::string& folder, const json& request, Attached& attached) {
  const MonoTime until = Clock::system().now() + kDaemonPatience;
  for (;;) {
    auto client = admin::connect_client(socket_path(folder));
    std::optional<Error> trouble;
    if (client) {
      TRY(admin::check_daemon(**client, socket_path(folder)));  // the request has the user's keys
      attached.process = process_of(**client);
      auto answer = (*client)->call(request, {}, {}, kPreparePatience);
      if (answer) {
        attached.client = std::move(*client);
        attached.prepared = std::move(*answer);
        return {};
      }
      // It ended under us: start another one. All else is about this mount.
      if (answer.error().code() != ErrorCode::kCancelled) return fail(answer.error());
      trouble = answer.error();
    } else if (client.error().code() == ErrorCode::kAccessDenied) {
      return fail(client.error().within(
          fmt::format("the cache folder '{}' belongs to another user, choose another with --cache", folder)));
    } else if (client.error().code() != ErrorCode::kUnavailable) {
      return fail(client.error());
    } else {
      auto started = start_daemon({folder, invocation.settings, invocation.foreground});
      if (started) {
        attached.started = true;
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

/// A mount that failed leaves nothing behind: the daemon that was started for it ends with our connection, unless others came.
void let_go(Attached& attached) {
  attached.client.reset();
  if (attached.started) wait_for_end(attached.process, kEndPatience);
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

/// The daemon that -f started may serve other mounts by now: it goes on until they are gone, or until the next Ctrl-C.
void wait_for_child(const Attached& attached, int signals, bool ends) {
  if (!ends) say("note: the daemon of this cache still serves other mounts; Ctrl-C again ends it and unmounts them");
  std::array<pollfd, 2> polled{pollfd{signals, POLLIN, 0}, pollfd{attached.process.get(), POLLIN, 0}};
  while (attached.process.valid() && polled[1].revents == 0) {
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) break;
    signalfd_siginfo info{};
    if ((polled[0].revents & POLLIN) != 0 && ::read(signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
      ::kill(attached.child, SIGTERM);
  }
  ::waitpid(attached.child, nullptr, 0);
}

/// -f: until Ctrl-C, which unmounts, or until the mount has gone.
Result<void> stay(Attached& attached, std::uint64_t id, const std::string& path, int signals) {
  std::thread waiter;
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return fail(errno_error(errno, "pipe"));
  const admin::UniqueFd gone(ends[0]);
  admin::UniqueFd tell(ends[1]);
  bool daemon_ends = true;
  waiter = std::thread([&] {
    const auto answer = attached.client->call({{"command", "wait_gone"}, {"mount", id}, {"timeout_ms", -1}}, {}, {},
                                              std::chrono::hours(24 * 3650));
    if (answer) daemon_ends = answer->value("ends", true);
    tell.reset();
  });
  Result<void> result;
  int asked = 0;
  while (result) {
    std::array<pollfd, 2> polled{pollfd{signals, POLLIN, 0}, pollfd{gone.get(), POLLIN, 0}};
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) break;
    if (polled[1].revents != 0) break;
    if ((polled[0].revents & POLLIN) == 0) continue;
    signalfd_siginfo info{};
    if (::read(signals, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) continue;
    if (++asked == 1) {
      auto unmounted = fuse::unmount(path, false);
      if (unmounted) continue;
      say(fmt::format("{}; it is detached and ends when they are done, or at the next Ctrl-C", unmounted.error().message()));
      result = fuse::unmount(path, true);
    } else if (attached.child > 0) {
      ::kill(attached.child, SIGTERM);
    } else {
      result = fail(ErrorCode::kBusy, fmt::format("'{}' is detached, but programs still use it; the daemon serves them", path));
    }
  }
  if (!result) ::shutdown(attached.client->fd(), SHUT_RDWR);
  waiter.join();
  if (attached.child > 0) wait_for_child(attached, signals, daemon_ends);
  return result;
}

/// "rw" among the words of a -o list.
bool asks_to_write(std::string_view words) { return fmt::format(",{},", words).find(",rw,") != std::string::npos; }

/// Holds back what Ctrl-C and the like send, for as long as it lives: a process that dies between mount(2) and the daemon's
/// answer would leave a mount that nobody serves. Ignored signals stay ignored: nohup, and a shell that starts us in the
/// background of a script, have said that they shall not end us.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction now{};
      if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&set_, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  [[nodiscard]] const sigset_t& set() const { return set_; }
  [[nodiscard]] bool any_came() const {
    sigset_t pending;
    sigset_t ours;
    sigemptyset(&pending);
    ::sigpending(&pending);
    ::sigandset(&ours, &pending, &set_);
    return ::sigisemptyset(&ours) == 0;
  }
  /// Those that came have had their effect: the end of this object must not let them kill us.
  void take() const {
    const timespec none{};
    while (::sigtimedwait(&set_, nullptr, &none) > 0) {
    }
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
};

/// What is done once the daemon has seen the store: mount, hand the descriptor over, see that the mount answers.
Result<void> put_up(const Invocation& invocation, const fuse::MountRequest& request, Attached& attached,
                    const HeldSignals& held) {
  TRY_ASSIGN(auto mounted, fuse::mount_fuse(request));
  if (!mounted.privileged) say("note: mounted through fusermount3: kernel read-ahead stays small and passthrough is off");
  admin::UniqueFd signals;
  if (invocation.foreground) signals.reset(::signalfd(-1, &held.set(), SFD_CLOEXEC));
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
  if (!invocation.foreground && held.any_came()) {
    take_back(mounted.path);
    return fail(ErrorCode::kCancelled, fmt::format("interrupted: '{}' is not mounted", mounted.path));
  }
  if (!invocation.foreground) return {};
  return stay(attached, answer->at("mount").get<std::uint64_t>(), mounted.path, signals.get());
}

}  // namespace

Result<void> cmd_mount(const Invocation& invocation) {
  const Settings& settings = invocation.settings;
  for (const auto& note : invocation.notes) say("note: " + note);
  log::set_level(log::Level::kError);  // what matters is said here in sentences; the daemon has its own log
  TRY_ASSIGN(const auto url, parse_store_url(invocation.positional.at(0), false));
  fuse::MountRequest request;
  request.source = url.text();
  TRY_ASSIGN(request.options, fuse::parse_mount_options(settings.text("o")));
  request.options.flags |= MS_RDONLY;  // what is true is shown: in `mount`, to access(2), in each EROFS
  if (asks_to_write(settings.text("o"))) say("note: -o rw: this release mounts read-only");

  // A mount that a dead daemon left there goes first: its folder answers nothing, not even to realpath.
  TRY_ASSIGN(const bool cleared, fuse::clear_dead_mount(invocation.positional.at(1)));
  if (cleared) say(fmt::format("note: '{}' held a mount whose daemon is dead; it is replaced", invocation.positional.at(1)));
  TRY_ASSIGN(request.path, fuse::canonical_mount_path(invocation.positional.at(1)));
  TRY(fuse::check_mount(request));
  TRY_ASSIGN(const auto spec, make_mount_spec(url, request.path, settings));
  TRY_ASSIGN(const std::string folder, cache_folder(settings));

  const bool ran_before = admin::connect_client(socket_path(folder)).has_value();
  Attached attached;
  auto done = reach_daemon(invocation, folder, {{"command", "prepare"}, {"spec", to_json(spec)}}, attached);
  if (done) {
    if (ran_before && !attached.started) warn_of_ignored(settings, attached.prepared);
    if (attached.prepared.value("empty", false)) say(fmt::format("note: there is nothing at {} yet", url.text()));
    const HeldSignals held;
    done = put_up(invocation, request, attached, held);
    if (!done) held.take();  // the reason is said, and a daemon that was started for it is let go
  }
  if (!done) let_go(attached);
  return done;
}

Result<void> cmd_umount(const Invocation& invocation) {
  const std::string& given = invocation.positional.at(0);
  const auto report = [&](const std::string& path, bool was_dead, bool daemon_ended) {
    if (!invocation.json) return;
    const json answer{{"mount_point", path}, {"was_dead", was_dead}, {"daemon_ended", daemon_ended}};
    std::cout << admin::to_text(answer, 2) << '\n';
  };
  log::set_level(log::Level::kError);
  TRY_ASSIGN(const bool dead, fuse::clear_dead_mount(given));
  TRY_ASSIGN(const std::string path, fuse::canonical_mount_path(given));
  if (dead) {
    say(fmt::format("note: the mount at '{}' was dead; it is cleared", given));
    report(path, true, true);
    return {};
  }
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
  admin::UniqueFd process;
  if (client) process = process_of(*client);
  TRY(fuse::unmount(path, invocation.lazy));
  bool ended = false;
  if (client) {
    json request{{"command", "wait_gone"}, {"mount", located->admin.mount_id}};
    if (invocation.lazy) request["timeout_ms"] = kDetachPatience.count();
    auto gone = client->call(request, {}, {}, std::chrono::seconds(40));
    // A daemon that ends with its last mount may be gone before it answers: that is what was asked for.
    const bool ending = gone ? gone->value("ends", false) : gone.error().code() == ErrorCode::kCancelled;
    const bool used = invocation.lazy && !gone && gone.error().code() == ErrorCode::kTimeout;
    if (used)
      say(fmt::format("note: '{}' is detached; programs still use it and are served until they close their files", given));
    if (!gone && !ending && !used) return fail(gone.error());
    ended = ending && wait_for_end(process, kDaemonPatience);
  }
  report(path, false, ended);
  return {};
}

Result<void> cmd_daemon(const Invocation& invocation) {
  return run_daemon({invocation.settings, invocation.ends_when_idle, invocation.status_fd});
}

}  // namespace thermo::app
