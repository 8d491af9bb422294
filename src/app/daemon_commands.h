#pragma once
// What the daemon does for each command of the admin protocol. The members of requests and answers are listed in README.md.

#include <nlohmann/json_fwd.hpp>

#include "app/daemon.h"
#include "front/admin/metrics_page.h"
#include "front/admin/server.h"

namespace thermo::app {

class DaemonCommands final : public admin::Handler {
 public:
  /// Both must outlive it; `metrics_page` may be null.
  DaemonCommands(Daemon& daemon, const admin::MetricsPage* metrics_page) : daemon_(daemon), metrics_page_(metrics_page) {}
  [[nodiscard]] Result<void> handle(admin::Call& call) override;

 private:
  Result<void> prepare(admin::Call& call);
  Result<void> attach(admin::Call& call);
  Result<void> wait_gone(admin::Call& call);
  Result<void> stat(admin::Call& call);
  Result<void> ls(admin::Call& call);
  Result<void> load(admin::Call& call);
  Result<void> free(admin::Call& call);
  Result<void> status(admin::Call& call);
  Result<void> debug(admin::Call& call);

  [[nodiscard]] RequestContext context(const admin::Call& call, Nanos timeout) const;
  [[nodiscard]] Result<MountPtr> mount_of(const admin::Call& call) const;

  Daemon& daemon_;
  const admin::MetricsPage* metrics_page_;
  std::atomic<int> loads_{0};
};

/// Bytes that leave the daemon by where they came from, requests to the store and the share of hits, out of the metrics.
[[nodiscard]] nlohmann::json traffic_json(const metrics::Registry& registry);

}  // namespace thermo::app
