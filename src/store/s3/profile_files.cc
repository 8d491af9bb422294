#include "store/s3/profile_files.h"

#include <fmt/format.h>

#include <set>

namespace thermo::store {
namespace {

using Section = std::map<std::string, std::string>;

struct LoadedFile {
  std::string path;
  IniSections sections;
  std::string trouble;  // why it could not be read; empty when it was
};

LoadedFile load(const std::string& path) {
  LoadedFile file;
  file.path = path;
  if (path.empty()) {
    file.trouble = "no home folder known";
    return file;
  }
  auto text = read_small_file(path);
  if (text) {
    file.sections = parse_ini(*text);
  } else {
    file.trouble = text.error().code() == ErrorCode::kNotFound ? "no such file" : std::string(text.error().message());
  }
  return file;
}

std::string config_section(const std::string& profile) { return profile == "default" ? profile : "profile " + profile; }

const Section* find_section(const LoadedFile& file, const std::string& name) {
  const auto it = file.sections.find(name);
  return it == file.sections.end() ? nullptr : &it->second;
}

const Section* config_profile(const LoadedFile& config, const std::string& profile) {
  const auto* section = find_section(config, config_section(profile));
  return section == nullptr && profile == "default" ? find_section(config, "profile default") : section;
}

std::string value_of(const Section* section, const std::string& name) {
  if (section == nullptr) return {};
  const auto it = section->find(name);
  return it == section->end() ? std::string() : it->second;
}

std::string known_profiles(const LoadedFile& credentials, const LoadedFile& config) {
  std::set<std::string> names;
  for (const auto& [name, values] : credentials.sections) names.insert(name);
  for (const auto& [name, values] : config.sections) {
    if (name.starts_with("profile ")) names.insert(name.substr(8));
    if (name == "default") names.insert(name);
  }
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "'" : ", '") + name + "'";
  return list.empty() ? "none" : list;
}

std::string places(const LoadedFile& credentials, const LoadedFile& config) {
  const auto one = [](const LoadedFile& file, std::string_view what) {
    return fmt::format("{}{}", file.path.empty() ? std::string(what) : file.path,
                       file.trouble.empty() ? "" : " (" + file.trouble + ")");
  };
  return one(credentials, "the shared credentials file") + " and " + one(config, "the shared config file");
}

// Settings that stand above the keys of the same profile; the same profile with keys only would mean somebody else.
Result<void> refuse_unsupported(const std::string& profile, const Section* section,
                                std::initializer_list<std::string_view> names) {
  for (const auto name : names) {
    if (value_of(section, std::string(name)).empty()) continue;
    return fail(
        ErrorCode::kNotSupported,
        fmt::format("profile '{}' uses {}, which this release does not support: give a profile with aws_access_key_id and "
                    "aws_secret_access_key, or export the keys into the environment (aws configure export-credentials)",
                    profile, name));
  }
  return {};
}

std::string expanded(const std::string& path, const std::string& home) {
  return path.starts_with("~/") && !home.empty() ? home + path.substr(1) : path;
}

}  // namespace

std::string variable(const CredentialOptions& options, const std::string& name) {
  const auto it = options.environment.find(name);
  return it == options.environment.end() ? std::string() : it->second;
}

ProfilePlace profile_place(const CredentialOptions& options) {
  ProfilePlace place;
  place.profile = options.profile;
  if (place.profile.empty()) place.profile = variable(options, "AWS_PROFILE");
  if (place.profile.empty()) place.profile = variable(options, "AWS_DEFAULT_PROFILE");
  place.named = !place.profile.empty();
  if (!place.named) place.profile = "default";
  const auto file = [&](const char* name, const char* below_home) {
    const std::string given = variable(options, name);
    if (!given.empty()) return expanded(given, options.home);
    return options.home.empty() ? std::string() : options.home + below_home;
  };
  place.credentials_file = file("AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials");
  place.config_file = file("AWS_CONFIG_FILE", "/.aws/config");
  return place;
}

Result<ProfileKeys> load_profile_keys(const ProfilePlace& place) {
  const LoadedFile credentials = load(place.credentials_file);
  const LoadedFile config = load(place.config_file);
  const Section* in_credentials = find_section(credentials, place.profile);
  const Section* in_config = config_profile(config, place.profile);
  if (in_credentials == nullptr && in_config == nullptr && place.named) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("there is no profile '{}' in {}; profiles found: {}", place.profile,
                                                         places(credentials, config), known_profiles(credentials, config)));
  }
  for (const Section* section : {in_credentials, in_config}) {
    TRY(refuse_unsupported(place.profile, section, {"role_arn", "web_identity_token_file", "sso_session", "sso_start_url"}));
  }
  for (const auto& [section, file] : {std::pair{in_credentials, &credentials}, std::pair{in_config, &config}}) {
    ProfileKeys keys;
    keys.file = file->path;
    keys.key = {value_of(section, "aws_access_key_id"), value_of(section, "aws_secret_access_key"),
                value_of(section, "aws_session_token")};
    if (keys.key.id.empty() != keys.key.secret.empty()) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("profile '{}' in {} has only one of aws_access_key_id and aws_secret_access_key", place.profile,
                              file->path));
    }
    if (!keys.key.id.empty()) return keys;
  }
  for (const Section* section : {in_credentials, in_config}) {
    TRY(refuse_unsupported(place.profile, section, {"credential_process", "credential_source"}));
  }
  return fail(
      ErrorCode::kAccessDenied,
      fmt::format(
          "no access keys found: looked at the command line, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, and "
          "profile '{}' in {}; for a public bucket use --no-sign-request",
          place.profile, places(credentials, config)));
}

std::string profile_setting(const ProfilePlace& place, const std::string& name) {
  const LoadedFile config = load(place.config_file);
  std::string value = value_of(config_profile(config, place.profile), name);
  if (!value.empty()) return value;
  const LoadedFile credentials = load(place.credentials_file);
  return value_of(find_section(credentials, place.profile), name);
}

std::string profile_endpoint(const ProfilePlace& place) {
  const LoadedFile config = load(place.config_file);
  const std::string services = value_of(config_profile(config, place.profile), "services");
  if (!services.empty()) {
    const std::string url = value_of(find_section(config, "services " + services), "s3.endpoint_url");
    if (!url.empty()) return url;
  }
  return profile_setting(place, "endpoint_url");
}

}  // namespace thermo::store
