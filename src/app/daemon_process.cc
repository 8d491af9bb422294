#include "app/daemon_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "app/daemon.h"
#include "app/daemon_commands.h"
#include "app/places.h"
#include "app/version.h"
#include "base/log.h"

namespace thermo::app {
namespace {

constexpr int kStatusFd = 3;
/// A daemon that nobody mounts with ends after this: its `thermo mount` died.
constexpr auto kIdleGrace = std::chrono::seconds(5);
constexpr auto kStartPatience = std::chrono::seconds(60);

std::string log_target(const Settings& settings, const std::string& cache_folder, bool ends_when_idle) {
  if (settings.given("log")) return settings.text("log");
  return ends_when_idle ? cache_folder + "/thermo.log" : std::string("stderr");
}

bool is_file(const std::string& target) { return target != "stderr" && target != "syslog"; }

/// What a library or a crash writes to stderr belongs into the log file too.
void send_stderr_to(const std::string& file) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
  if (fd < 0) return;
  ::dup2(fd, STDERR_FILENO);
  ::close(fd);
}

Result<void> open_log(const Settings& settings, const std::string& target) {
  std::string place = target;
  admin::UniqueFd own;
  // Who gives a file may give a link; in the cache folder none is ours, and it could lead to a file that only we may write.
  if (is_file(target) && !settings.given("log")) {
    own.reset(::open(target.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0640));
    if (!own.valid() && errno == ELOOP) {
      return fail(ErrorCode::kAccessDenied,
                  fmt::format("the log '{}' is a symbolic link; remove it, or give the file that is meant with --log", target));
    }
    if (own.valid()) place = fmt::format("/proc/self/fd/{}", own.get());
  }
  TRY(log::configure({settings.level("log-level"), place}));
  if (is_file(target)) send_stderr_to(place);
  return {};
}

void tell(int fd, std::string_view text) {
  while (fd >= 0 && !text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // whoever started us is gone: the log has it too
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

/// SIGTERM, SIGINT and SIGHUP are read from a descriptor by the main thread; every other thread inherits them blocked.
Result<admin::UniqueFd> take_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  if (::pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) return fail(errno_error(errno, "block signals"));
  ::signal(SIGPIPE, SIG_IGN);
  admin::UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC));
  if (!fd.valid()) return fail(errno_error(errno, "signal descriptor"));
  return fd;
}

class Life {
 public:
  Life(Daemon& daemon, const Settings& settings, std::string log, int signals, int idle)
      : daemon_(daemon), settings_(settings), log_(std::move(log)), signals_(signals), idle_(idle) {}

  void run() {
    const MonoTime grace = Clock::system().now() + kIdleGrace;
    for (;;) {
      std::array<pollfd, 2> polled{pollfd{signals_, POLLIN, 0}, pollfd{idle_, POLLIN, 0}};
      const bool in_grace = daemon_.options().ends_when_idle && Clock::system().now() < grace;
      const int n = ::poll(polled.data(), polled.size(), in_grace ? static_cast<int>(kIdleGrace / Millis(1)) : -1);
      if (n < 0 && errno != EINTR) return;
      if ((polled[0].revents & POLLIN) != 0 && handle_signal()) return;
      const bool woken = (polled[1].revents & POLLIN) != 0;
      if (woken) {
        std::uint64_t count = 0;
        if (::read(idle_, &count, sizeof count) < 0) return;
      }
      if ((woken || n == 0) && daemon_.options().ends_when_idle && daemon_.close_if_idle()) {
        log::info("the last mount is gone: ending");
        return;
      }
    }
  }

 private:
  bool handle_signal() {
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return false;
    if (info.ssi_signo == SIGHUP) {
      if (auto reopened = open_log(settings_, log_); !reopened) log::error("{}", reopened.error().message());
      log::info("log opened again");
      return false;
    }
    log::info("ending on signal {}", info.ssi_signo);
    return true;
  }

  Daemon& daemon_;
  const Settings& settings_;
  const std::string log_;
  const int signals_;
  const int idle_;
};

Result<void> run(const DaemonProcess& process) {
  ::umask(0027);  // cached bytes and names of files are for those that may read the mount
  TRY_ASSIGN(const auto signals, take_signals());
  const admin::UniqueFd idle(::eventfd(0, EFD_CLOEXEC));
  if (!idle.valid()) return fail(errno_error(errno, "event descriptor"));
  TRY_ASSIGN(const std::string folder, cache_folder(process.settings));

  Daemon::Options options;
  options.cache_folder = folder;
  options.socket = socket_path(folder);
  options.settings = process.settings;
  options.ends_when_idle = process.ends_when_idle;
  options.on_idle = [fd = idle.get()] {
    const std::uint64_t one = 1;
    if (::write(fd, &one, sizeof one) < 0) log::error("cannot wake the daemon's main thread");
  };
  log::set_level(process.settings.level("log-level"));
  log::set_channel(log::Channel::kFuse, process.settings.on("debug_fuse"));
  log::set_channel(log::Channel::kS3, process.settings.on("debug_s3"));
  TRY(check_cache_owner(folder));
  TRY_ASSIGN(const auto daemon, Daemon::open(options));
  // Only now does the cache folder surely exist; where it was missing, somebody else may have been quicker to make it.
  TRY(check_cache_owner(folder));
  const std::string log_place = log_target(process.settings, folder, process.ends_when_idle);
  TRY(open_log(process.settings, log_place));

  std::unique_ptr<admin::MetricsPage> page;
  if (process.settings.text("metrics") != "off") {
    TRY_ASSIGN(const auto address, admin::parse_listen_address(process.settings.text("metrics")));
    auto started = admin::start_metrics_page(address, daemon->metrics(), {});
    // Not kBusy: that is for a cache folder in use, which the next attempt may find free.
    if (!started) return fail(ErrorCode::kInvalidArgument, std::string(started.error().message()));
    page = std::move(*started);
  }
  TRY(prepare_socket_folder(folder));
  DaemonCommands commands(*daemon, page.get());
  admin::ServerOptions server_options;
  server_options.path = options.socket;
  TRY_ASSIGN(const auto server, admin::start_server(server_options, commands));

  log::info("thermo {} ({}) serves the cache {} ({} bytes at most), process {}", version(), commit(), folder,
            daemon->cache().status().limit_bytes, ::getpid());
  tell(process.status_fd, "ready\n");
  if (process.status_fd >= 0) ::close(process.status_fd);

  Life(*daemon, process.settings, log_place, signals.get(), idle.get()).run();
  // Sessions first: commands that wait for an unmount get their answer. Then nobody may use the parts any more.
  daemon->unmount_all();
  server->stop();
  page.reset();
  log::info("ended");
  return {};
}

/// Options that the daemon takes, as its arguments.
std::vector<std::string> daemon_arguments(const StartOptions& options) {
  std::vector<std::string> args{"thermo",
                                "daemon",
                                "--ends-when-idle",
                                fmt::format("--status-fd={}", kStatusFd),
                                "--config=/dev/null",
                                "--cache=" + options.cache_folder};
  for (const auto& spec : option_table()) {
    if ((spec.scope & kDaemonScope) == 0 || spec.name == "cache" || !options.settings.given(spec.name)) continue;
    std::string value = options.settings.text(spec.name);
    // The daemon runs in "/".
    if (spec.name == "log" && is_file(value)) value = std::filesystem::absolute(value).string();
    args.push_back(fmt::format("--{}={}", spec.name, value));
  }
  if (options.foreground && !options.settings.given("log")) args.emplace_back("--log=stderr");
  return args;
}

/// Between fork and exec: only calls that are safe there.
[[noreturn]] void become_daemon(char* const* argv, int status, bool foreground, pid_t parent) {
  if (foreground) {
    ::setpgid(0, 0);  // Ctrl-C reaches the parent only, which unmounts in order
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);
  } else {
    ::setsid();
    if (::chdir("/") != 0) ::_exit(1);
  }
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  if (!foreground) ::dup2(null, STDERR_FILENO);  // a pipe that our caller waits on must not stay open with us
  if (status != kStatusFd) {
    ::dup2(status, kStatusFd);
  } else {
    ::fcntl(status, F_SETFD, 0);
  }
  ::close_range(kStatusFd + 1, ~0u, 0);
  ::execv("/proc/self/exe", argv);
  ::_exit(127);
}

}  // namespace

std::string status_line(const Error& error) {
  std::string text(error.message());
  std::replace(text.begin(), text.end(), '\n', ' ');
  return fmt::format("error {} {}\n", static_cast<int>(error.code()), text);
}

Result<void> parse_status(std::string_view text, std::string_view log_place) {
  if (text == "ready\n") return {};
  if (text.starts_with("error ") && text.ends_with('\n')) {
    text.remove_prefix(6);
    text.remove_suffix(1);
    int code = 0;
    std::size_t i = 0;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9' && code < 1000) code = code * 10 + (text[i++] - '0');
    const auto last = static_cast<int>(ErrorCode::kInternal);
    if (i > 0 && i < text.size())
      return fail(code <= last ? static_cast<ErrorCode>(code) : ErrorCode::kInternal, std::string(text.substr(i + 1)));
  }
  return fail(ErrorCode::kInternal, fmt::format("the daemon ended before it was ready; {} may say why", log_place));
}

Result<void> run_daemon(const DaemonProcess& process) {
  auto result = run(process);
  if (!result) tell(process.status_fd, status_line(result.error()));
  return result;
}

Result<Started> start_daemon(const StartOptions& options) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(errno_error(errno, "pipe to the daemon"));
  admin::UniqueFd from(ends[0]);
  admin::UniqueFd to(ends[1]);
  auto args = daemon_arguments(options);
  std::vector<char*> argv;
  for (auto& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail(errno_error(errno, "start the daemon"));
  if (pid == 0) become_daemon(argv.data(), to.get(), options.foreground, parent);
  to.reset();

  std::string text;
  const MonoTime until = Clock::system().now() + kStartPatience;
  while (!text.ends_with('\n')) {
    pollfd p{from.get(), POLLIN, 0};
    const auto left = std::chrono::duration_cast<Millis>(until - Clock::system().now()).count();
    const int n = left > 0 ? ::poll(&p, 1, static_cast<int>(left)) : 0;
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return fail(ErrorCode::kTimeout, fmt::format("the daemon (process {}) is not ready after {} s; its log may say why", pid,
                                                   kStartPatience / std::chrono::seconds(1)));
    }
    std::array<char, 4096> chunk{};
    const ssize_t got = ::read(from.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  auto ready = parse_status(text, log_target(options.settings, options.cache_folder, true));
  if (!ready) {
    ::waitpid(pid, nullptr, 0);  // it has said its last word: it ends
    return fail(ready.error());
  }
  return Started{pid};
}

}  // namespace thermo::app
