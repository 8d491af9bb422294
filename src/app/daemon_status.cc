#include <fmt/core.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "app/daemon_commands.h"
#include "app/version.h"
#include "front/admin/protocol.h"

namespace thermo::app {
namespace {

using nlohmann::json;

/// Bytes of memory that only this process has, from smaps_rollup: what the memory target is about.
json process_memory() {
  std::uint64_t own_kib = 0;
  std::uint64_t resident_kib = 0;
  std::ifstream in("/proc/self/smaps_rollup");
  std::string name;
  std::uint64_t kib = 0;
  std::string rest;
  std::getline(in, rest);
  while (in >> name >> kib >> rest) {
    if (name == "Private_Clean:" || name == "Private_Dirty:" || name == "Private_Hugetlb:") own_kib += kib;
    if (name == "Rss:") resident_kib = kib;
  }
  return {{"private", own_kib * 1024}, {"resident", resident_kib * 1024}};
}

double seconds_between(MonoTime from, MonoTime to) { return std::chrono::duration<double>(to - from).count(); }

/// The value of label `name` in "family{a=x,b=y}", quoted or not.
std::string label_of(std::string_view series, std::string_view name) {
  const auto at = series.find(fmt::format("{}=", name));
  if (at == std::string_view::npos) return {};
  std::string_view value = series.substr(at + name.size() + 1);
  if (value.starts_with('"')) value.remove_prefix(1);
  return std::string(value.substr(0, value.find_first_of("\",}")));
}

}  // namespace

json traffic_json(const metrics::Registry& registry) {
  json bytes = json::object();
  json requests = json::object();
  std::int64_t served = 0;
  std::int64_t from_store = 0;
  std::int64_t fetched = 0;
  for (const auto& [series, value] : registry.snapshot()) {
    const std::string_view family = std::string_view(series).substr(0, series.find('{'));
    if (family == "thermocline_bytes_served_total") {
      const auto tier = label_of(series, "tier");
      bytes[tier] = bytes.value(tier, std::int64_t{0}) + value;
      served += value;
      if (tier == "cold" || tier == "store" || tier == "fill") from_store += value;
    } else if (family == "thermocline_store_requests_total") {
      const auto verb = label_of(series, "verb");
      if (value == 0) continue;
      requests[verb] = requests.value(verb, std::int64_t{0}) + value;
    } else if (family == "thermocline_store_bytes_total" && label_of(series, "direction") != "out" &&
               label_of(series, "direction") != "put") {
      fetched += value;
    }
  }
  json out{{"bytes_served", std::move(bytes)}, {"store_requests", std::move(requests)}, {"bytes_fetched", fetched}};
  if (served > 0) out["hit_ratio"] = 1.0 - static_cast<double>(from_store) / static_cast<double>(served);
  return out;
}

Result<void> DaemonCommands::status(admin::Call& call) {
  const auto now = daemon_.clock().now();
  const auto cache = daemon_.cache().status();
  const auto catalog = daemon_.catalog().stats();
  json mounts = json::array();
  for (const auto& mount : daemon_.mounts()) {
    mounts.push_back({{"mount", mount->id},
                      {"store", mount->spec.store.text()},
                      {"endpoint", mount->spec.endpoint},
                      {"mount_point", mount->spec.mount_point},
                      {"privileged", mount->privileged},
                      {"open_files", mount->vfs->open_handles()},
                      {"waiting_requests", mount->session->waiting()},
                      {"skipped_keys", mount->view->skipped().count},
                      {"up_seconds", seconds_between(mount->since, now)}});
  }
  json out{{"daemon",
            {{"pid", ::getpid()},
             {"version", std::string(version())},
             {"commit", std::string(commit())},
             {"up_seconds", seconds_between(daemon_.started(), now)},
             {"socket", daemon_.options().socket},
             {"metrics", metrics_page_ == nullptr ? json() : json("http://" + metrics_page_->address() + "/metrics")},
             {"ends_with_last_mount", daemon_.options().ends_when_idle}}},
           {"cache",
            {{"folder", daemon_.options().cache_folder},
             {"limit", cache.limit_bytes},
             {"used", cache.used_bytes},
             {"objects", cache.objects},
             {"device", cache.device_state},
             {"device_reason", cache.device_reason}}},
           {"memory",
            {{"buffers_used", daemon_.memory().used()},
             {"buffers_limit", daemon_.memory().limit()},
             {"catalog", catalog.memory_bytes},
             {"process", process_memory()}}},
           {"catalog", {{"files", catalog.files}, {"folders", catalog.folders}}},
           {"traffic", traffic_json(daemon_.metrics())},
           {"mounts", std::move(mounts)}};
  TRY_ASSIGN(const bool metrics, admin::flag_member(call.request(), "metrics", false));
  if (metrics) out["metrics"] = daemon_.metrics().snapshot();
  call.answer(out);
  return {};
}

}  // namespace thermo::app
