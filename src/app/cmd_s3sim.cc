#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "app/cmd.h"
#include "base/units.h"
#include "s3sim/s3sim.h"

namespace thermo::app {
namespace {

Result<s3sim::Options> options_of(const S3simArgs& args) {
  s3sim::Options options;
  const int modes = (args.memory ? 1 : 0) + (args.folder.empty() ? 0 : 1) + (args.proxy.empty() ? 0 : 1);
  if (modes != 1) return fail(ErrorCode::kInvalidArgument, "give one of: a folder, --memory, --proxy URL");
  if (args.memory) options.mode = s3sim::Options::Mode::kMemory;
  if (!args.folder.empty()) options.mode = s3sim::Options::Mode::kFolder;
  if (!args.proxy.empty()) options.mode = s3sim::Options::Mode::kProxy;
  options.folder = args.folder;
  options.upstream = args.proxy;
  options.address = args.address;
  options.port = static_cast<std::uint16_t>(args.port);
  options.first_byte = Nanos(static_cast<std::int64_t>(args.first_byte_ms * 1e6));
  const auto rate = [](const std::string& text, const char* flag, std::uint64_t& out) -> Result<void> {
    if (text.empty()) return {};
    auto parsed = parse_rate(text);
    if (!parsed) return fail(parsed.error().within(flag));
    out = *parsed;
    return {};
  };
  TRY(rate(args.per_connection, "--per-connection", options.per_connection));
  TRY(rate(args.total, "--total", options.total));
  options.faults = args.faults;
  options.seed = args.seed;
  for (const auto& key : args.access_keys) {
    const auto colon = key.find(':');
    if (colon == std::string::npos || colon == 0) return fail(ErrorCode::kInvalidArgument, "--access-key: write ID:SECRET");
    options.keys[key.substr(0, colon)] = key.substr(colon + 1);
    options.check_signatures = true;
  }
  options.region = args.region;
  if (!args.clock_offset.empty()) {
    const bool back = args.clock_offset[0] == '-';
    auto offset = parse_duration(std::string_view(args.clock_offset).substr(back || args.clock_offset[0] == '+' ? 1 : 0));
    if (!offset) return fail(offset.error().within("--clock-offset"));
    options.clock_offset = back ? -*offset : *offset;
  }
  if (args.tls_certificate.empty() != args.tls_key.empty())
    return fail(ErrorCode::kInvalidArgument, "--tls-cert and --tls-key go together");
  options.tls_certificate = args.tls_certificate;
  options.tls_key = args.tls_key;
  return options;
}

/// Whoever waits for the file must never read half of it.
Result<void> write_ready_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".new";
  std::ofstream out(temporary, std::ios::trunc);
  out << text << '\n';
  out.close();
  if (!out || std::rename(temporary.c_str(), path.c_str()) != 0) return fail(errno_error(errno, fmt::format("write '{}'", path)));
  return {};
}

}  // namespace

Result<void> cmd_s3sim(const Invocation& invocation) {
  TRY_ASSIGN(const auto options, options_of(invocation.s3sim));
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  TRY_ASSIGN(const auto server, s3sim::start(options));
  const std::string url =
      fmt::format("{}://{}:{}", options.tls_certificate.empty() ? "http" : "https", options.address, server->port());
  fmt::print("s3sim at {}: a stand-in for tests and demos only, never for data that matters; counters at {}/_sim/stats\n", url,
             url);
  std::fflush(stdout);
  if (!invocation.s3sim.ready_file.empty()) TRY(write_ready_file(invocation.s3sim.ready_file, url));
  int signal = 0;
  while (::sigwait(&set, &signal) != 0) {
  }
  server->stop();
  return {};
}

}  // namespace thermo::app
