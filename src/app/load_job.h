#pragma once
// Brings whole files into the cache: bounded parallelism, bounded memory, progress.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/daemon.h"
#include "base/context.h"

namespace thermo::app {

struct LoadProgress {
  std::uint64_t files = 0;  ///< planned
  std::uint64_t bytes = 0;
  std::uint64_t files_done = 0;  ///< resident now, or failed
  std::uint64_t bytes_done = 0;
  std::uint64_t files_failed = 0;
};

struct LoadFailure {
  std::string key;
  std::string message;
};

struct LoadResult {
  LoadProgress total;
  std::uint64_t bytes_present = 0;    ///< were there already
  std::vector<LoadFailure> failures;  ///< the first 100
};

/// Loads `entries` of `mount`. `report` is called from one thread about five times a second, while the files are
/// counted too; an error from it ends the job. A
/// file that cannot be read, or that does not stay in the cache (full, failed device), is a failure of its own; others go on.
[[nodiscard]] Result<LoadResult> run_load(const RequestContext& ctx, Daemon& daemon, const MountPtr& mount,
                                          const std::vector<catalog::Entry>& entries,
                                          const std::function<Result<void>(const LoadProgress&)>& report);

}  // namespace thermo::app
