#include "app/mount_spec.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "app/users.h"
#include "front/admin/protocol.h"
#include "net/sigv4.h"

extern char** environ;

namespace thermo::app {
namespace {

using nlohmann::json;

/// Names are bytes, JSON is UTF-8: what may be either travels percent-encoded.
std::string armour(std::string_view bytes) { return net::uri_encode(bytes, true); }

std::map<std::string, std::string> aws_environment() {
  std::map<std::string, std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (text.starts_with("AWS_") && equals != std::string_view::npos)
      found.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  // The daemon, which reads these files again when keys were rotated, has another working folder.
  for (const char* name : {"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"}) {
    const auto file = found.find(name);
    if (file != found.end() && !file->second.empty() && !file->second.starts_with("~/"))
      file->second = std::filesystem::absolute(file->second).string();
  }
  return found;
}

}  // namespace

Result<MountSpec> make_mount_spec(const StoreUrl& store, std::string_view mount_point, const Settings& settings) {
  MountSpec spec;
  spec.store = store;
  spec.mount_point = mount_point;
  spec.credentials.access_key_id = settings.text("access-key-id");
  spec.credentials.secret_access_key = settings.text("secret-access-key");
  spec.credentials.session_token = settings.text("session-token");
  spec.credentials.profile = settings.text("profile");
  spec.credentials.anonymous = settings.on("no-sign-request");
  spec.credentials.environment = aws_environment();
  spec.credentials.home = home_folder();
  if (store.kind == StoreUrl::Kind::kS3) {
    spec.endpoint = settings.text("endpoint");
    if (spec.endpoint.empty()) spec.endpoint = store::default_endpoint(spec.credentials);
    spec.region = settings.text("region");
    if (spec.region.empty()) spec.region = store::default_region(spec.credentials);
  }
  if (settings.on("path-style") && settings.on("virtual-host")) {
    return fail(ErrorCode::kInvalidArgument, "--path-style and --virtual-host contradict each other; give one of them");
  }
  if (settings.on("path-style")) spec.addressing = store::Addressing::kPath;
  if (settings.on("virtual-host")) spec.addressing = store::Addressing::kVirtualHost;
  spec.requester_pays = settings.on("requester-pays");
  // The daemon has another working folder.
  if (!settings.text("ca-bundle").empty()) spec.ca_bundle = std::filesystem::absolute(settings.text("ca-bundle")).string();
  spec.verify_tls = !settings.on("no-verify-tls");
  spec.uid = ::getuid();
  spec.gid = ::getgid();
  if (settings.given("uid")) {
    TRY_ASSIGN(spec.uid, parse_uid(settings.text("uid")));
  }
  if (settings.given("gid")) {
    TRY_ASSIGN(spec.gid, parse_gid(settings.text("gid")));
  }
  spec.file_mode = settings.mode("file-mode");
  spec.dir_mode = settings.mode("dir-mode");
  spec.ttl = settings.ttl("ttl").value;
  spec.timeout = settings.duration("timeout");
  spec.fuse_minor = settings.count("fuse-minor");
  spec.debug_fuse = settings.on("debug_fuse");
  spec.debug_s3 = settings.on("debug_s3");
  return spec;
}

json to_json(const MountSpec& spec) {
  return {{"kind", spec.store.kind == StoreUrl::Kind::kS3 ? "s3" : "file"},
          {"bucket", spec.store.bucket},
          {"prefix", armour(spec.store.prefix)},
          {"path", armour(spec.store.path)},
          {"endpoint", spec.endpoint},
          {"region", spec.region},
          {"addressing", static_cast<int>(spec.addressing)},
          {"requester_pays", spec.requester_pays},
          {"ca_bundle", armour(spec.ca_bundle)},
          {"verify_tls", spec.verify_tls},
          {"access_key_id", spec.credentials.access_key_id},
          {"secret_access_key", spec.credentials.secret_access_key},
          {"session_token", spec.credentials.session_token},
          {"profile", spec.credentials.profile},
          {"anonymous", spec.credentials.anonymous},
          {"environment", spec.credentials.environment},
          {"home", armour(spec.credentials.home)},
          {"mount_point", armour(spec.mount_point)},
          {"uid", spec.uid},
          {"gid", spec.gid},
          {"file_mode", spec.file_mode},
          {"dir_mode", spec.dir_mode},
          {"ttl_ns", spec.ttl.count()},
          {"timeout_ns", spec.timeout.count()},
          {"fuse_minor", spec.fuse_minor},
          {"debug_fuse", spec.debug_fuse},
          {"debug_s3", spec.debug_s3}};
}

Result<MountSpec> mount_spec_from_json(const json& value) {
  const auto bytes = [&](const char* name, std::string& out) -> Result<void> {
    TRY_ASSIGN(out, net::uri_decode(value.at(name).get_ref<const std::string&>()));
    return {};
  };
  const auto whole = [&](const char* name, auto& out, std::int64_t least, std::int64_t most) -> Result<void> {
    (void)value.at(name);
    TRY_ASSIGN(const auto number, admin::number_member(value, name, 0, least, most));
    out = static_cast<std::remove_reference_t<decltype(out)>>(number);
    return {};
  };
  try {
    MountSpec spec;
    const auto kind = value.at("kind").get<std::string>();
    if (kind != "s3" && kind != "file") return fail(ErrorCode::kInvalidArgument, fmt::format("unknown kind of store '{}'", kind));
    spec.store.kind = kind == "s3" ? StoreUrl::Kind::kS3 : StoreUrl::Kind::kFile;
    spec.store.bucket = value.at("bucket").get<std::string>();
    TRY(bytes("prefix", spec.store.prefix));
    TRY(bytes("path", spec.store.path));
    spec.endpoint = value.at("endpoint").get<std::string>();
    spec.region = value.at("region").get<std::string>();
    TRY(whole("addressing", spec.addressing, 0, static_cast<int>(store::Addressing::kVirtualHost)));
    spec.requester_pays = value.at("requester_pays").get<bool>();
    TRY(bytes("ca_bundle", spec.ca_bundle));
    spec.verify_tls = value.at("verify_tls").get<bool>();
    spec.credentials.access_key_id = value.at("access_key_id").get<std::string>();
    spec.credentials.secret_access_key = value.at("secret_access_key").get<std::string>();
    spec.credentials.session_token = value.at("session_token").get<std::string>();
    spec.credentials.profile = value.at("profile").get<std::string>();
    spec.credentials.anonymous = value.at("anonymous").get<bool>();
    spec.credentials.environment = value.at("environment").get<std::map<std::string, std::string>>();
    TRY(bytes("home", spec.credentials.home));
    TRY(bytes("mount_point", spec.mount_point));
    TRY(whole("uid", spec.uid, 0, UINT32_MAX));
    TRY(whole("gid", spec.gid, 0, UINT32_MAX));
    TRY(whole("file_mode", spec.file_mode, 0, 0777));
    TRY(whole("dir_mode", spec.dir_mode, 0, 0777));
    TRY(whole("ttl_ns", spec.ttl, 0, INT64_MAX));
    TRY(whole("timeout_ns", spec.timeout, 1, INT64_MAX));
    TRY(whole("fuse_minor", spec.fuse_minor, 0, UINT32_MAX));
    spec.debug_fuse = value.at("debug_fuse").get<bool>();
    spec.debug_s3 = value.at("debug_s3").get<bool>();
    return spec;
  } catch (const json::exception& e) {
    // Another version of the program at the other end.
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("the mount request is not understood ({}); are daemon and command of one version?", e.what()));
  }
}

}  // namespace thermo::app
