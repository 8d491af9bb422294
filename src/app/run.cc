#include "app/run.h"

#include <fmt/core.h>

#include <cstdio>
#include <exception>

#include "app/cmd.h"

namespace thermo::app {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

Result<void> dispatch(const Invocation& invocation) {
  switch (invocation.command) {
    case Command::kShow: fmt::print("{}", invocation.text); return {};
    case Command::kMount: return cmd_mount(invocation);
    case Command::kUmount: return cmd_umount(invocation);
    case Command::kDaemon: return cmd_daemon(invocation);
    case Command::kStatus: return cmd_status(invocation);
    case Command::kStat: return cmd_stat(invocation);
    case Command::kLs: return cmd_ls(invocation);
    case Command::kLoad: return cmd_load(invocation);
    case Command::kFree: return cmd_free(invocation);
    case Command::kDebug: return cmd_debug(invocation);
    case Command::kConfig: fmt::print("{}", invocation.settings.to_toml()); return {};
    case Command::kS3sim: return cmd_s3sim(invocation);
  }
  return fail(ErrorCode::kInternal, "no such command");
}

}  // namespace

void say(const std::string& sentence) { fmt::print(stderr, "thermo: {}\n", sentence); }

int run(const std::string& program, const std::vector<std::string>& args) {
  try {
    const auto invocation = parse_command_line(program, args);
    if (!invocation) {
      say(std::string(invocation.error().message()));
      return kUsage;
    }
    const auto done = dispatch(*invocation);
    if (done) return 0;
    say(std::string(done.error().message()));
    return kFailed;
  } catch (const std::exception& e) {
    say(fmt::format("internal error: {}", e.what()));  // a bug: expected failures are values
    return kFailed;
  }
}

}  // namespace thermo::app
