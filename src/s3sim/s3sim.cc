#include "s3sim/s3sim.h"

#include <sys/stat.h>

#include "net/http_server.h"
#include "s3sim/simulator.h"

namespace thermo::s3sim {
namespace {

class RunningServer final : public Server {
 public:
  RunningServer(std::unique_ptr<Simulator> simulator, std::unique_ptr<net::HttpServer> http)
      : simulator_(std::move(simulator)), http_(std::move(http)) {}
  ~RunningServer() override { stop(); }

  std::uint16_t port() const override { return http_->port(); }
  void stop() override {
    // First what sleeps or waits for an upstream, or the HTTP server would wait for it.
    simulator_->stop();
    http_->stop();
  }

 private:
  std::unique_ptr<Simulator> simulator_;  // outlives the threads of http_
  std::unique_ptr<net::HttpServer> http_;
};

}  // namespace

Result<std::unique_ptr<Server>> start(const Options& options) {
  TRY_ASSIGN(auto rules, parse_faults(options.faults));
  std::unique_ptr<Backend> backend;
  std::optional<UpstreamAddress> upstream;
  switch (options.mode) {
    case Options::Mode::kMemory: backend = make_memory_backend(); break;
    case Options::Mode::kFolder: {
      struct stat st{};
      if (::stat(options.folder.c_str(), &st) != 0) return fail(errno_error(errno, fmt::format("folder '{}'", options.folder)));
      if (!S_ISDIR(st.st_mode))
        return fail(ErrorCode::kNotDirectory,
                    fmt::format("'{}' is not a folder; each of its sub-folders would be a bucket", options.folder));
      backend = make_folder_backend(options.folder);
      break;
    }
    case Options::Mode::kProxy: {
      TRY_ASSIGN(upstream, parse_upstream(options.upstream));
      break;
    }
  }
  if (options.check_signatures && options.keys.empty())
    return fail(ErrorCode::kInvalidArgument, "checking signatures needs at least one access key id with its secret");
  auto simulator = std::make_unique<Simulator>(options, std::move(rules), std::move(backend), std::move(upstream));
  net::HttpServerOptions http;
  http.address = options.address;
  http.port = options.port;
  http.max_connections = options.max_connections;
  http.idle_timeout = options.idle_timeout;
  http.tls_certificate = options.tls_certificate;
  http.tls_key = options.tls_key;
  TRY_ASSIGN(auto server,
             net::start_http_server(http, [sim = simulator.get()](net::Exchange& exchange) { sim->handle(exchange); }));
  return std::make_unique<RunningServer>(std::move(simulator), std::move(server));
}

}  // namespace thermo::s3sim
