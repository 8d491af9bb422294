#pragma once
// A daemon as a process: its life from start to signal, and how `thermo mount` starts one.

#include <sys/types.h>

#include <string>
#include <vector>

#include "app/settings.h"
#include "base/result.h"
#include "front/admin/unique_fd.h"

namespace thermo::app {

struct DaemonProcess {
  Settings settings;
  bool ends_when_idle = false;
  /// Where readiness is told: "ready\n", or "error <code> <sentence>\n". -1: nowhere, errors are the return value alone.
  int status_fd = -1;
};
/// Runs until SIGTERM or SIGINT, or (ends_when_idle) until the last mount is gone. SIGHUP opens the log file again.
[[nodiscard]] Result<void> run_daemon(const DaemonProcess& process);

struct StartOptions {
  std::string cache_folder;
  Settings settings;
  bool foreground = false;  ///< child of ours that logs to stderr and ends with us; else in a session of its own
};
struct Started {
  pid_t pid = -1;
};
/// Starts this program as a daemon that ends with its last mount, and waits until it is ready (at most 60 s). The daemon's own
/// error when it could not start.
[[nodiscard]] Result<Started> start_daemon(const StartOptions& options);

/// The status line's text, both ways. Pure.
[[nodiscard]] std::string status_line(const Error& error);
[[nodiscard]] Result<void> parse_status(std::string_view text, std::string_view log_place);

}  // namespace thermo::app
