#pragma once
// The Prometheus text page: GET /metrics on a loopback address.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "base/result.h"

namespace thermo::admin {

struct ListenAddress {
  std::string host;
  std::uint16_t port = 0;
  auto operator<=>(const ListenAddress&) const = default;
};
/// "127.0.0.1:9100", "localhost:0". kInvalidArgument for other forms, for IPv6 (the HTTP server listens on IPv4 only) and for
/// addresses that are not loopback: the page has no access control.
[[nodiscard]] Result<ListenAddress> parse_listen_address(std::string_view text);

/// Serves until destroyed.
class MetricsPage {
 public:
  virtual ~MetricsPage() = default;
  /// "127.0.0.1:41234", with the port that was really taken.
  [[nodiscard]] virtual std::string address() const = 0;
};

/// `registry` must outlive the page. `refresh` (optional) is called before each page, to set gauges that are only known by
/// asking.
[[nodiscard]] Result<std::unique_ptr<MetricsPage>> start_metrics_page(const ListenAddress& address,
                                                                      const metrics::Registry& registry,
                                                                      std::function<void()> refresh);

}  // namespace thermo::admin
