#pragma once
// `thermo s3sim`: a stand-in for an S3 server, for tests, the demo and benchmarks only. Serves a folder, flat keys in memory, or
// stands as a proxy in front of another endpoint; with delays, bandwidth limits, faults from a seed, and request counters at
// /_sim/stats.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace thermo::s3sim {

struct Options {
  enum class Mode { kMemory, kFolder, kProxy } mode = Mode::kMemory;
  std::string folder;    ///< kFolder: each sub-folder is a bucket
  std::string upstream;  ///< kProxy: "http://127.0.0.1:8333"
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;
  Nanos first_byte{0};               ///< delay before each answer
  std::uint64_t per_connection = 0;  ///< bytes per second, 0 = no limit
  std::uint64_t total = 0;           ///< bytes per second over all connections
  std::string faults;                ///< grammar in faults.h
  std::uint64_t seed = 1;
  bool check_signatures = false;
  std::map<std::string, std::string> keys;  ///< access key id -> secret, with check_signatures
  std::string region;                       ///< with check_signatures: empty = any
  Nanos clock_offset{0};                    ///< the server's clock against ours, for RequestTimeTooSkewed
  std::string tls_certificate, tls_key;
  std::size_t max_connections = 512;
  Nanos idle_timeout = std::chrono::seconds(65);  ///< keep-alive connections silent for longer are closed
};

/// What `thermo s3sim` says when it starts.
inline constexpr std::string_view kNotice =
    "s3sim stands in for an S3 server in tests, demos and benchmarks. It is not storage: memory mode forgets everything when it "
    "ends, and it "
    "breaks answers on purpose when told to.";

class Server {
 public:
  virtual ~Server() = default;
  [[nodiscard]] virtual std::uint16_t port() const = 0;
  virtual void stop() = 0;
};

[[nodiscard]] Result<std::unique_ptr<Server>> start(const Options& options);

}  // namespace thermo::s3sim
