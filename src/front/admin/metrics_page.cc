#include "front/admin/metrics_page.h"

#include <fmt/core.h>

#include <charconv>

#include "base/log.h"
#include "net/http_server.h"

namespace thermo::admin {
namespace {

class MetricsPageImpl final : public MetricsPage {
 public:
  MetricsPageImpl(ListenAddress address, std::unique_ptr<net::HttpServer> server)
      : address_(std::move(address)), server_(std::move(server)) {}
  ~MetricsPageImpl() override { server_->stop(); }
  std::string address() const override { return fmt::format("{}:{}", address_.host, server_->port()); }

 private:
  const ListenAddress address_;
  std::unique_ptr<net::HttpServer> server_;
};

void serve(net::Exchange& exchange, const metrics::Registry& registry, const std::function<void()>& refresh) {
  const auto& request = exchange.request();
  const std::string_view path = std::string_view(request.target).substr(0, request.target.find('?'));
  Result<void> sent;
  if (path != "/metrics") {
    sent = exchange.respond(404, {{"Content-Type", "text/plain"}}, "the metrics are at /metrics\n");
  } else if (request.method != "GET" && request.method != "HEAD") {
    sent = exchange.respond(405, {{"Allow", "GET, HEAD"}, {"Content-Type", "text/plain"}}, "only GET\n");
  } else {
    if (refresh) refresh();
    sent = exchange.respond(200, {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}}, registry.text());
  }
  // The scraper went away: nothing to do but to say so to whoever looks for it.
  if (!sent) log::debug("metrics page: {}", sent.error().describe());
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("'{}' {}; write an address and a port such as 127.0.0.1:9100 (port 0 takes a free one)", text, why));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad("has no port");
  ListenAddress address;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') || host.find(':') != std::string_view::npos) return bad("is an IPv6 address; the page has IPv4 only");
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size()) return bad("has no port between 0 and 65535");
  if (host == "localhost") host = "127.0.0.1";
  if (!host.starts_with("127.")) return bad("is not a loopback address (the page has no access control; put a proxy in front)");
  address.host = host;
  return address;
}

Result<std::unique_ptr<MetricsPage>> start_metrics_page(const ListenAddress& address, const metrics::Registry& registry,
                                                        std::function<void()> refresh) {
  net::HttpServerOptions options;
  options.address = address.host;
  options.port = address.port;
  options.max_connections = 16;
  auto server = net::start_http_server(
      options, [&registry, refresh = std::move(refresh)](net::Exchange& exchange) { serve(exchange, registry, refresh); });
  if (!server) return fail(server.error().within(fmt::format("metrics page on {}:{}", address.host, address.port)));
  return std::make_unique<MetricsPageImpl>(address, std::move(*server));
}

}  // namespace thermo::admin
