#include "app/daemon_commands.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <semaphore>
#include <thread>

#include "app/load_job.h"
#include "app/places.h"
#include "app/tree_walk.h"
#include "app/version.h"
#include "base/log.h"
#include "front/admin/protocol.h"
#include "net/sigv4.h"

namespace thermo::app {
namespace {

using nlohmann::json;

constexpr auto kFileTimeout = std::chrono::seconds(60);
constexpr auto kTreeTimeout = std::chrono::hours(24);
constexpr int kMaxLoads = 4;

std::string armour(std::string_view bytes) { return net::uri_encode(bytes, true); }

Result<std::string> member(const json& request, const char* name) {
  const auto it = request.find(name);
  if (it == request.end() || !it->is_string())
    return fail(ErrorCode::kInvalidArgument, fmt::format("the request lacks \"{}\"", name));
  return it->get<std::string>();
}

/// The paths of a request, decoded.
Result<std::vector<std::string>> paths_of(const json& request) {
  const auto it = request.find("paths");
  if (it == request.end() || !it->is_array()) return fail(ErrorCode::kInvalidArgument, "the request lacks \"paths\"");
  std::vector<std::string> paths;
  for (const auto& item : *it) {
    if (!item.is_string()) return fail(ErrorCode::kInvalidArgument, "a path in the request is not a string");
    TRY_ASSIGN(auto path, net::uri_decode(item.get_ref<const std::string&>()));
    paths.push_back(std::move(path));
  }
  return paths;
}

/// Without `resident` for folders: it would be a walk.
Result<json> entry_json(const RequestContext& ctx, Daemon& daemon, const Mount& mount, std::string_view name,
                        const catalog::Entry& entry) {
  json out{{"name", armour(name)}};
  if (const auto* file = std::get_if<catalog::File>(&entry)) {
    // What the cache cannot tell is not resident: a broken device must not hide the file.
    const auto residency = daemon.cache().residency(ctx, mount.vfs->object_ref(*file));
    out["type"] = "file";
    out["key"] = armour(file->key);
    out["size"] = file->size;
    out["resident"] = residency ? residency->resident : 0;
    out["filling"] = residency ? residency->filling : 0;
    out["etag"] = file->etag;
    out["mtime_ns"] = file->mtime;
    out["version"] = file->version.hex();
    out["ino"] = file->ino;
    out["generation"] = file->generation;
  } else {
    const auto& folder = std::get<catalog::Folder>(entry);
    out["type"] = "folder";
    out["key"] = armour(folder.prefix);
    out["ino"] = folder.ino;
  }
  return out;
}

std::string store_url(const Mount& mount, const catalog::Entry& entry) {
  const auto* file = std::get_if<catalog::File>(&entry);
  const std::string& key = file != nullptr ? file->key : std::get<catalog::Folder>(entry).prefix;
  if (mount.spec.store.kind == StoreUrl::Kind::kFile)
    return fmt::format("file://{}{}{}", mount.spec.store.path, key.empty() ? "" : "/", key);
  return fmt::format("s3://{}/{}", mount.spec.store.bucket, key);
}

}  // namespace

RequestContext DaemonCommands::context(const admin::Call& call, Nanos timeout) const {
  auto ctx = RequestContext::with_timeout(daemon_.clock(), timeout);
  ctx.stop = call.stop_token();
  ctx.principal = {call.peer().uid, call.peer().gid, call.peer().pid};
  return ctx;
}

Result<MountPtr> DaemonCommands::mount_of(const admin::Call& call) const {
  const auto it = call.request().find("mount");
  if (it == call.request().end() || !it->is_number_unsigned())
    return fail(ErrorCode::kInvalidArgument, "the request lacks \"mount\", a number");
  return daemon_.find(it->get<std::uint64_t>());
}

Result<void> DaemonCommands::handle(admin::Call& call) {
  const auto& command = call.request().at("command").get_ref<const std::string&>();
  if (command == "prepare") return prepare(call);
  if (command == "attach") return attach(call);
  if (command == "wait_gone") return wait_gone(call);
  if (command == "stat") return stat(call);
  if (command == "ls") return ls(call);
  if (command == "load") return load(call);
  if (command == "free") return free(call);
  if (command == "status") return status(call);
  if (command == "debug") return debug(call);
  return fail(ErrorCode::kNotSupported,
              fmt::format("this daemon (version {}) does not know the command '{}'; restart it with the newer program", version(),
                          command));
}

namespace {

/// Folders and key files are opened with the daemon's rights: another user must not reach through it what is not theirs.
Result<void> check_rights(const admin::Peer& peer, const MountSpec& spec) {
  if (peer.uid == 0 || peer.uid == ::geteuid()) return {};
  constexpr std::string_view kOwn = "mount with a cache of your own (--cache DIR)";
  if (spec.store.kind == StoreUrl::Kind::kFile) {
    return fail(
        ErrorCode::kAccessDenied,
        fmt::format("the daemon of this cache runs as another user (uid {}) and would read {} with that user's rights; {}",
                    ::geteuid(), spec.store.text(), kOwn));
  }
  const auto& keys = spec.credentials;
  const auto has = [&](const char* name) {
    const auto it = keys.environment.find(name);
    return it != keys.environment.end() && !it->second.empty();
  };
  const bool sent = !keys.access_key_id.empty() || (keys.profile.empty() && has("AWS_ACCESS_KEY_ID"));
  if (!keys.anonymous && !sent) {
    return fail(
        ErrorCode::kAccessDenied,
        fmt::format(
            "the daemon of this cache runs as another user (uid {}) and would read key files with that user's rights; give "
            "the keys in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), or {}",
            ::geteuid(), kOwn));
  }
  return {};
}

}  // namespace

Result<void> DaemonCommands::prepare(admin::Call& call) {
  const auto it = call.request().find("spec");
  if (it == call.request().end()) return fail(ErrorCode::kInvalidArgument, "the request lacks \"spec\"");
  TRY_ASSIGN(auto spec, mount_spec_from_json(*it));
  TRY(check_rights(call.peer(), spec));
  // Whoever waits for a silent store may give up (Ctrl-C): then nobody is to wait for it here either.
  std::stop_source stop;
  const std::stop_callback ending(call.stop_token(), [&] { stop.request_stop(); });
  std::binary_semaphore checked(0);
  std::jthread watcher([&] {
    while (!checked.try_acquire_for(Millis(100)))
      if (call.hung_up()) stop.request_stop();
  });
  auto prepared_or_not = daemon_.prepare(std::move(spec), stop.get_token());
  checked.release();
  TRY_ASSIGN(auto prepared, std::move(prepared_or_not));
  call.answer({{"empty", prepared->empty},
               {"version", std::string(version())},
               {"cache_size", daemon_.cache().status().limit_bytes},
               {"memory", daemon_.memory().limit()}});
  call.connection_state() = std::move(prepared);
  return {};
}

Result<void> DaemonCommands::attach(admin::Call& call) {
  // Only prepare puts something there.
  auto prepared = std::static_pointer_cast<Daemon::Prepared>(call.connection_state());
  if (!prepared) return fail(ErrorCode::kInvalidArgument, "\"attach\" needs a \"prepare\" on the same connection first");
  if (call.descriptors().size() != 1) return fail(ErrorCode::kInvalidArgument, "\"attach\" needs one descriptor of /dev/fuse");
  TRY_ASSIGN(const bool privileged, admin::flag_member(call.request(), "privileged", false));
  fuse::UniqueFd device(call.descriptors()[0].release());
  TRY_ASSIGN(const auto mount, daemon_.attach(*prepared, std::move(device), privileged));
  call.connection_state().reset();
  call.answer(
      {{"mount", mount->id}, {"protocol_minor", mount->session->negotiated().minor}, {"threads", mount->session->threads()}});
  return {};
}

Result<void> DaemonCommands::wait_gone(admin::Call& call) {
  const auto it = call.request().find("mount");
  if (it == call.request().end() || !it->is_number_unsigned())
    return fail(ErrorCode::kInvalidArgument, "the request lacks \"mount\", a number");
  // -1: as long as it takes.
  constexpr std::int64_t kDayMs = std::int64_t{24} * 3600 * 1000;
  TRY_ASSIGN(const auto timeout_ms, admin::number_member(call.request(), "timeout_ms", 30'000, -1, kDayMs));
  const MonoTime deadline = timeout_ms < 0 ? MonoTime::max() : daemon_.clock().now() + Millis(timeout_ms);
  const auto stop = call.stop_token();
  const bool gone =
      daemon_.wait_gone(it->get<std::uint64_t>(), deadline, [&] { return stop.stop_requested() || call.hung_up(); });
  if (!gone && stop.stop_requested()) return fail(ErrorCode::kCancelled, "the daemon is ending");
  if (!gone)
    return fail(ErrorCode::kTimeout,
                "the mount is detached, but programs still use it; the daemon serves them until they close their files");
  call.answer({{"ends", daemon_.options().ends_when_idle && daemon_.mounts().empty()}});
  return {};
}

Result<void> DaemonCommands::stat(admin::Call& call) {
  TRY_ASSIGN(const auto mount, mount_of(call));
  TRY_ASSIGN(const auto paths, paths_of(call.request()));
  const auto ctx = context(call, kFileTimeout);
  json entries = json::array();
  for (const auto& path : paths) {
    TRY_ASSIGN(const auto entry, mount->vfs->resolve(ctx, path));
    TRY_ASSIGN(auto out, entry_json(ctx, daemon_, *mount, path, entry));
    out["store"] = armour(store_url(*mount, entry));
    out["endpoint"] = mount->spec.endpoint;
    entries.push_back(std::move(out));
  }
  call.answer({{"entries", std::move(entries)}});
  return {};
}

Result<void> DaemonCommands::ls(admin::Call& call) {
  TRY_ASSIGN(const auto mount, mount_of(call));
  TRY_ASSIGN(const auto paths, paths_of(call.request()));
  const auto ctx = context(call, kTreeTimeout);
  std::uint64_t count = 0;
  for (const auto& path : paths) {
    TRY_ASSIGN(const auto entry, mount->vfs->resolve(ctx, path));
    if (const auto* folder = std::get_if<catalog::Folder>(&entry)) {
      const auto send = [&](std::vector<Named>& batch) -> Result<void> {
        json entries = json::array();
        for (const auto& named : batch) {
          TRY_ASSIGN(auto out, entry_json(ctx, daemon_, *mount, named.name, named.entry));
          entries.push_back(std::move(out));
        }
        count += batch.size();
        return call.progress({{"entries", std::move(entries)}});
      };
      auto listed = list_folder(ctx, *mount->vfs, folder->prefix, send);
      if (!listed) return listed;
    } else {
      TRY_ASSIGN(auto out, entry_json(ctx, daemon_, *mount, path, entry));
      TRY(call.progress({{"entries", json::array({std::move(out)})}}));
      ++count;
    }
  }
  call.answer({{"count", count}, {"skipped", mount->view->skipped().count}});
  return {};
}

Result<void> DaemonCommands::load(admin::Call& call) {
  TRY_ASSIGN(const auto mount, mount_of(call));
  TRY_ASSIGN(const auto paths, paths_of(call.request()));
  struct Slot {
    std::atomic<int>& loads;
    const int before = loads.fetch_add(1);
    ~Slot() { loads.fetch_sub(1); }
  } slot{loads_};
  if (slot.before >= kMaxLoads)
    return fail(ErrorCode::kBusy, fmt::format("{} loads are running already; try again when one has ended", kMaxLoads));
  const auto ctx = context(call, kTreeTimeout);
  std::vector<catalog::Entry> entries;
  for (const auto& path : paths) {
    TRY_ASSIGN(auto entry, mount->vfs->resolve(ctx, path));
    entries.push_back(std::move(entry));
  }
  const auto report = [&](const LoadProgress& now) -> Result<void> {
    if (call.hung_up()) return fail(ErrorCode::kCancelled, "the client is gone");
    return call.progress({{"files", now.files},
                          {"bytes", now.bytes},
                          {"files_done", now.files_done},
                          {"bytes_done", now.bytes_done},
                          {"files_failed", now.files_failed}});
  };
  TRY_ASSIGN(const auto result, run_load(ctx, daemon_, mount, entries, report));
  json failures = json::array();
  for (const auto& failure : result.failures) failures.push_back({{"key", armour(failure.key)}, {"message", failure.message}});
  call.answer({{"files", result.total.files},
               {"bytes", result.total.bytes},
               {"bytes_done", result.total.bytes_done},
               {"bytes_present", result.bytes_present},
               {"files_failed", result.total.files_failed},
               {"failures", std::move(failures)}});
  return {};
}

Result<void> DaemonCommands::free(admin::Call& call) {
  TRY_ASSIGN(const auto mount, mount_of(call));
  TRY_ASSIGN(const auto paths, paths_of(call.request()));
  const auto ctx = context(call, kTreeTimeout);
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
  ReportPace pace(daemon_.clock());
  const auto drop = [&](const catalog::File& file) -> Result<void> {
    TRY_ASSIGN(const auto freed, daemon_.cache().free(file.version));
    bytes += freed;
    files += freed > 0 ? 1 : 0;
    if (!pace.due()) return {};
    if (call.hung_up()) return fail(ErrorCode::kCancelled, "the client is gone");
    return call.progress({{"files", files}, {"bytes", bytes}});
  };
  for (const auto& path : paths) {
    TRY_ASSIGN(const auto entry, mount->vfs->resolve(ctx, path));
    auto walked = walk_files(ctx, *mount->vfs, entry, drop);
    if (!walked) return walked;
  }
  call.answer({{"files", files}, {"bytes", bytes}});
  return {};
}

Result<void> DaemonCommands::debug(admin::Call& call) {
  TRY_ASSIGN(const auto channel, member(call.request(), "channel"));
  TRY_ASSIGN(const bool on, admin::flag_member(call.request(), "on", true));
  if (channel != "fuse" && channel != "s3")
    return fail(ErrorCode::kInvalidArgument, fmt::format("'{}' is not a debug channel; write fuse or s3", channel));
  log::set_channel(channel == "fuse" ? log::Channel::kFuse : log::Channel::kS3, on);
  call.answer({{"channel", channel}, {"on", on}});
  return {};
}

}  // namespace thermo::app
