#pragma once
// The commands: each runs one and says what happened. An Error becomes "thermo: <sentence>" on stderr and exit code 1.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/command_line.h"
#include "app/places.h"
#include "base/clock.h"
#include "base/result.h"
#include "front/admin/client.h"
#include "front/admin/unique_fd.h"

namespace thermo::app {

[[nodiscard]] Result<void> cmd_mount(const Invocation& invocation);
[[nodiscard]] Result<void> cmd_umount(const Invocation& invocation);
[[nodiscard]] Result<void> cmd_daemon(const Invocation& invocation);
[[nodiscard]] Result<void> cmd_status(const Invocation& invocation);
[[nodiscard]] Result<void> cmd_stat(const Invocation& invocation);
[[nodiscard]] Result<void> cmd_ls(const Invocation& invocation);
[[nodiscard]] Result<void> cmd_load(const Invocation& invocation);
[[nodiscard]] Result<void> cmd_free(const Invocation& invocation);
[[nodiscard]] Result<void> cmd_debug(const Invocation& invocation);
[[nodiscard]] Result<void> cmd_s3sim(const Invocation& invocation);

/// The paths of one mount, as given and relative to it.
struct PathGroup {
  Located mount;
  std::vector<std::string> given;
  std::vector<std::string> relative;
};
/// Groups paths by the mount that holds them, in the order of their first path.
[[nodiscard]] Result<std::vector<PathGroup>> group_paths(const std::vector<std::string>& paths);

/// A request for one mount's paths.
[[nodiscard]] nlohmann::json path_request(const char* command, const PathGroup& group);
/// A name or path out of an answer, in its own bytes.
[[nodiscard]] std::string plain(const nlohmann::json& armoured);
/// The answer with names decoded, for --json: bytes that are not UTF-8 become U+FFFD.
void make_plain(nlohmann::json& value);

/// Says a sentence on stderr.
void say(const std::string& sentence);
/// The process at the other end, to wait for; invalid when it has gone already.
[[nodiscard]] admin::UniqueFd process_of(const admin::Client& client);
/// True once the process is gone, false when it still lives after `patience`.
bool wait_for_end(const admin::UniqueFd& process, Millis patience);

}  // namespace thermo::app
