#pragma once
// The command line: which command, with what. Knows every form in which the program may be called.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "app/settings.h"
#include "base/result.h"

namespace thermo::app {

enum class Command : std::uint8_t { kShow, kMount, kUmount, kDaemon, kStatus, kStat, kLs, kLoad, kFree, kDebug, kConfig, kS3sim };

/// `thermo s3sim`, as written.
struct S3simArgs {
  std::string folder;
  std::string proxy;
  bool memory = false;
  std::string address = "127.0.0.1";
  unsigned port = 9000;
  double first_byte_ms = 0;
  std::string per_connection;
  std::string total;
  std::string faults;
  std::uint64_t seed = 1;
  std::vector<std::string> access_keys;  ///< "ID:SECRET"
  std::string region;
  std::string clock_offset;
  std::string tls_certificate, tls_key;
  std::string ready_file;
};

struct Invocation {
  Command command = Command::kShow;
  std::string text;  ///< kShow: print this and end with success
  Settings settings;
  std::vector<std::string> positional;  ///< paths; for mount: store and mount point
  std::vector<std::string> notes;       ///< to be said on stderr
  bool json = false;
  bool foreground = false;
  bool lazy = false;
  bool metrics = false;         ///< status --metrics
  bool ends_when_idle = false;  ///< daemon started by mount
  int status_fd = -1;
  S3simArgs s3sim;
};

/// `program` is argv[0] (a name that starts with "mount." is mount(8)'s helper form), `args` the rest. Reads the config files.
/// Errors are kInvalidArgument: usage, exit code 2.
[[nodiscard]] Result<Invocation> parse_command_line(const std::string& program, std::span<const std::string> args);

}  // namespace thermo::app
