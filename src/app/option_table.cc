#include "app/option_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "app/users.h"
#include "base/units.h"
#include "front/admin/metrics_page.h"

namespace thermo::app {
namespace {

constexpr std::string_view kStore = "Store";
constexpr std::string_view kCache = "Cache and memory";
constexpr std::string_view kView = "Mount";
constexpr std::string_view kLog = "Log and metrics";

constexpr std::array kTable{
    OptionSpec{"endpoint", "store.endpoint", Kind::kText, "", "URL",
               "S3 server, such as http://127.0.0.1:8333 (default: AWS_ENDPOINT_URL, the profile's, or AWS)", kStore,
               kMountScope},
    OptionSpec{"region", "store.region", Kind::kText, "", "NAME",
               "region that requests are signed for (default: AWS_REGION, the profile's, or us-east-1, then what the store says)",
               kStore, kMountScope},
    OptionSpec{"profile", "store.profile", Kind::kText, "", "NAME",
               "profile of ~/.aws/credentials and ~/.aws/config (default: AWS_PROFILE or 'default')", kStore, kMountScope},
    OptionSpec{"access-key-id", "store.access-key-id", Kind::kText, "", "ID", "access key; before the environment and profiles",
               kStore, kMountScope},
    OptionSpec{"secret-access-key", "store.secret-access-key", Kind::kText, "", "KEY",
               "its secret: others can see a command line, a profile or a config file of mode 0600 is safer", kStore,
               kMountScope},
    OptionSpec{"session-token", "store.session-token", Kind::kText, "", "TOKEN", "its session token, for temporary keys", kStore,
               kMountScope},
    OptionSpec{"no-sign-request", "store.no-sign-request", Kind::kSwitch, "false", "", "ask without access keys: public buckets",
               kStore, kMountScope},
    OptionSpec{"path-style", "store.path-style", Kind::kSwitch, "false", "",
               "always endpoint/bucket/key (default: chosen by endpoint and bucket)", kStore, kMountScope},
    OptionSpec{"virtual-host", "store.virtual-host", Kind::kSwitch, "false", "", "always bucket.endpoint/key", kStore,
               kMountScope},
    OptionSpec{"requester-pays", "store.requester-pays", Kind::kSwitch, "false", "",
               "accept that the reader pays for requests and traffic", kStore, kMountScope},
    OptionSpec{"ca-bundle", "store.ca-bundle", Kind::kText, "", "FILE",
               "certificates that may sign the endpoint's (default: the system's)", kStore, kMountScope},
    OptionSpec{"no-verify-tls", "store.no-verify-tls", Kind::kSwitch, "false", "",
               "do not check the endpoint's certificate: for trials only", kStore, kMountScope},
    OptionSpec{"connections", "store.connections", Kind::kCount, "64", "N", "connections to one endpoint at most", kStore,
               kBothScopes},

    OptionSpec{
        "cache", "cache.path", Kind::kText, "", "DIR",
        "folder of the cache; one daemon serves all mounts on it (default: /var/cache/thermo for root, else ~/.cache/thermo)",
        kCache, kBothScopes},
    OptionSpec{"cache-size", "cache.size", Kind::kShare, "20%", "SIZE",
               "bytes the cache may take on disk, or a share of its file system such as 20%", kCache, kBothScopes, "1MiB"},
    OptionSpec{"memory", "cache.memory", Kind::kSize, "256MiB", "SIZE", "memory for all buffers: fills and what is read ahead",
               kCache, kBothScopes, "16MiB"},

    OptionSpec{"uid", "mount.uid", Kind::kUid, "", "USER", "owner shown for every file, number or name (default: who mounts)",
               kView, kMountScope},
    OptionSpec{"gid", "mount.gid", Kind::kGid, "", "GROUP", "group shown for every file, number or name (default: who mounts)",
               kView, kMountScope},
    OptionSpec{"file-mode", "mount.file-mode", Kind::kMode, "0644", "BITS", "permission bits of files, octal", kView,
               kMountScope},
    OptionSpec{"dir-mode", "mount.dir-mode", Kind::kMode, "0755", "BITS", "permission bits of folders, octal", kView,
               kMountScope},
    OptionSpec{"o", "mount.options", Kind::kWords, "", "WORDS",
               "mount options such as ro,allow_other (root's mounts always are); options of this list also as name=value", kView,
               kMountScope},
    OptionSpec{"ttl", "mount.ttl", Kind::kFreshness, "60s", "TIME",
               "how long names and attributes are believed: a duration, 'immutable' or 'strict' (ask at each open)", kView,
               kMountScope},
    OptionSpec{"timeout", "mount.timeout", Kind::kDuration, "30s", "TIME",
               "a request of a program ends after this long with an I/O error", kView, kMountScope, "1s"},
    OptionSpec{"fuse-minor", "mount.fuse-minor", Kind::kCount, "45", "N",
               "newest FUSE protocol 7.N to offer: tries what older kernels do", kView, kMountScope},

    OptionSpec{"log", "log.target", Kind::kText, "", "WHERE",
               "stderr, syslog or a file (default: thermo.log in the cache folder; stderr with -f)", kLog, kBothScopes},
    OptionSpec{"log-level", "log.level", Kind::kLevel, "info", "LEVEL", "debug, info, warn or error", kLog, kBothScopes},
    OptionSpec{"debug_fuse", "log.debug-fuse", Kind::kSwitch, "false", "", "one log line for each file system request", kLog,
               kBothScopes},
    OptionSpec{"debug_s3", "log.debug-s3", Kind::kSwitch, "false", "", "one log line for each request to the store", kLog,
               kBothScopes},
    OptionSpec{"metrics", "log.metrics", Kind::kListen, "off", "ADDRESS:PORT",
               "serve Prometheus metrics at /metrics on an IPv4 loopback address; port 0 takes a free one", kLog, kBothScopes},
};

/// "no_sign_request" and "no-sign-request" name the same flag.
bool same_name(std::string_view a, std::string_view b) {
  const auto plain = [](char c) { return c == '_' ? '-' : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return plain(x) == plain(y); });
}

Result<void> bad(std::string_view value, std::string_view what) {
  return fail(ErrorCode::kInvalidArgument, fmt::format("'{}' is not {}", value, what));
}

template <class T>
Result<void> drop_value(Result<T>&& result) {
  if (!result) return fail(std::move(result).error());
  return {};
}

/// What `parse` makes of `value`, and that it is not below the option's least.
template <class Parse>
Result<void> check_amount(const OptionSpec& spec, std::string_view value, Parse parse) {
  TRY_ASSIGN(const auto amount, parse(value));
  if (!spec.least.empty() && amount < *parse(spec.least)) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("'{}' is too little to work with; give at least {}", value, spec.least));
  }
  return {};
}

Result<void> check_share(const OptionSpec& spec, std::string_view value) {
  if (!value.ends_with('%')) return check_amount(spec, value, parse_size);
  double share = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size() - 1, share);
  if (error == std::errc() && end == value.data() + value.size() - 1 && share > 0 && share <= 100) return {};
  return bad(value, "a share of a file system; write a number above 0 and up to 100 before the %, such as 20%");
}

}  // namespace

std::span<const OptionSpec> option_table() { return kTable; }

const OptionSpec* find_option(std::string_view name) {
  const auto it = std::find_if(kTable.begin(), kTable.end(), [&](const OptionSpec& spec) { return same_name(spec.name, name); });
  return it == kTable.end() ? nullptr : &*it;
}

const OptionSpec* find_key(std::string_view key) {
  const auto it = std::find_if(kTable.begin(), kTable.end(), [&](const OptionSpec& spec) { return spec.key == key; });
  return it == kTable.end() ? nullptr : &*it;
}

std::vector<std::string_view> option_names() {
  std::vector<std::string_view> names;
  for (const auto& spec : kTable) names.push_back(spec.name);
  return names;
}

std::vector<std::string_view> option_keys() {
  std::vector<std::string_view> keys;
  for (const auto& spec : kTable) keys.push_back(spec.key);
  return keys;
}

Result<void> check_value(const OptionSpec& spec, std::string_view value) {
  switch (spec.kind) {
    case Kind::kText:
    case Kind::kWords:
      if (value.find('\n') != std::string_view::npos || value.find('\0') != std::string_view::npos)
        return bad(value, "one line of text");
      return {};
    case Kind::kSwitch:
      if (value == "true" || value == "false") return {};
      return bad(value, "true or false");
    case Kind::kSize: return check_amount(spec, value, parse_size);
    case Kind::kShare: return check_share(spec, value);
    case Kind::kDuration: return check_amount(spec, value, parse_duration);
    case Kind::kFreshness:
      if (value == "immutable" || value == "strict") return {};
      if (parse_duration(value)) return {};
      return bad(value, "a time to believe names for; write immutable, strict or a duration with its unit such as 60s");
    case Kind::kUid: return drop_value(parse_uid(value));
    case Kind::kGid: return drop_value(parse_gid(value));
    case Kind::kMode: return drop_value(parse_mode(value));
    case Kind::kCount: {
      unsigned n = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
      if (!value.empty() && error == std::errc() && end == value.data() + value.size() && n > 0 && n <= 100000) return {};
      return bad(value, "a whole number from 1 to 100000");
    }
    case Kind::kListen:
      if (value == "off") return {};
      return drop_value(admin::parse_listen_address(value));
    case Kind::kLevel:
      if (value == "debug" || value == "info" || value == "warn" || value == "error") return {};
      return bad(value, "a log level; write debug, info, warn or error");
  }
  return bad(value, "understood");
}

}  // namespace thermo::app
