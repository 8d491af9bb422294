#pragma once
// Every file below a path of a mount, in key order, folder by folder, in bounded memory.

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/context.h"
#include "base/result.h"
#include "catalog/catalog.h"
#include "vfs/vfs.h"

namespace thermo::app {

/// A name and what it is.
struct Named {
  std::string name;
  catalog::Entry entry;
};

/// Calls `visit` with batches of at most 1,000 names of one folder, in order, outside any lock, until it returns an error.
[[nodiscard]] Result<void> list_folder(const RequestContext& ctx, vfs::Vfs& vfs, const std::string& prefix,
                                       const std::function<Result<void>(std::vector<Named>&)>& visit);

/// Calls `visit` for `entry` (a file) or all files below it (a folder), until it returns an error.
[[nodiscard]] Result<void> walk_files(const RequestContext& ctx, vfs::Vfs& vfs, const catalog::Entry& entry,
                                      const std::function<Result<void>(const catalog::File&)>& visit);

/// When a long walk is to be heard of again, so that whoever waits for it does not give it up: about five times a second.
class ReportPace {
 public:
  static constexpr auto kEvery = Millis(200);

  explicit ReportPace(const Clock& clock) : clock_(clock), next_(clock.now() + kEvery) {}
  /// True when a report is due, which then counts as made.
  [[nodiscard]] bool due() {
    const MonoTime now = clock_.now();
    if (now < next_) return false;
    next_ = now + kEvery;
    return true;
  }

 private:
  const Clock& clock_;
  MonoTime next_;
};

}  // namespace thermo::app
