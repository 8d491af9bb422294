#include "store/s3/credentials.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/mutex.h"
#include "store/s3/profile_files.h"

namespace thermo::store {
namespace {

class FixedProvider final : public CredentialProvider {
 public:
  FixedProvider(Credentials credentials, std::string from) : credentials_(std::move(credentials)), from_(std::move(from)) {}
  Result<Credentials> get(const RequestContext& /*ctx*/) override { return credentials_; }
  bool invalidate() override { return false; }
  std::string describe() const override { return from_; }

 private:
  const Credentials credentials_;
  const std::string from_;
};

// Keys of a profile, read again when one of the two files changes: rotation needs no restart.
class ProfileProvider final : public CredentialProvider {
 public:
  ProfileProvider(ProfilePlace place, ProfileKeys keys) : place_(std::move(place)), keys_(std::move(keys)) { remember_stamps(); }

  Result<Credentials> get(const RequestContext& ctx) override;
  bool invalidate() override {
    MutexLock lock(mutex_);
    ++wanted_;
    return true;
  }
  std::string describe() const override {
    MutexLock lock(mutex_);
    return fmt::format("profile '{}' of {}", place_.profile, keys_.file);
  }

 private:
  using Stamps = std::pair<FileStamp, FileStamp>;
  static constexpr Nanos kCheckEvery = std::chrono::seconds(1);
  Stamps stamps() const { return {stamp_of(place_.credentials_file), stamp_of(place_.config_file)}; }
  void remember_stamps() {
    const auto now = stamps();
    MutexLock lock(mutex_);
    stamps_ = now;
    checked_ = Clock::system().now();
  }

  const ProfilePlace place_;
  mutable Mutex mutex_{LockRank::kCredentials, "profile credentials"};
  ProfileKeys keys_ GUARDED_BY(mutex_);
  Stamps stamps_ GUARDED_BY(mutex_);
  MonoTime checked_ GUARDED_BY(mutex_){};
  std::uint64_t wanted_ GUARDED_BY(mutex_) = 0;  // counts invalidations
  std::uint64_t loaded_ GUARDED_BY(mutex_) = 0;  // how many of them the keys have seen
};

Result<CredentialProvider::Credentials> ProfileProvider::get(const RequestContext& ctx) {
  Stamps known;
  std::uint64_t wanted = 0;
  bool forced = false;
  {
    const MonoTime now = Clock::system().now();
    MutexLock lock(mutex_);
    forced = loaded_ < wanted_;
    if (!ctx.may_wait || (!forced && now - checked_ < kCheckEvery)) return Credentials{false, keys_.key, 0};
    checked_ = now;
    wanted = wanted_;
    known = stamps_;
  }
  // Files are read without the lock: others go on with the old keys. Everyone who was refused reads for himself.
  const Stamps current = stamps();
  if (!forced && current == known) {
    MutexLock lock(mutex_);
    return Credentials{false, keys_.key, 0};
  }
  auto fresh = load_profile_keys(place_);
  MutexLock lock(mutex_);
  stamps_ = current;
  if (loaded_ < wanted) loaded_ = wanted;
  if (fresh) {
    keys_ = std::move(*fresh);
  } else {
    // Half-written or gone for a moment: the old keys may still be good, and the store says so if not.
    log::warn("going on with the old access key {}: {}", net::mask_secret(keys_.key.id), fresh.error().message());
  }
  return Credentials{false, keys_.key, 0};
}

Result<std::shared_ptr<CredentialProvider>> fixed(net::AccessKey key, std::string from, std::string_view what) {
  if (key.id.empty() || key.secret.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("only one of access key id and secret access key is given {}: give both", what));
  }
  return std::make_shared<FixedProvider>(CredentialProvider::Credentials{false, std::move(key), 0}, std::move(from));
}

}  // namespace

Result<std::shared_ptr<CredentialProvider>> make_credentials(const CredentialOptions& options) {
  if (options.anonymous) return std::make_shared<FixedProvider>(CredentialProvider::Credentials{true, {}, 0}, "anonymous");
  if (!options.access_key_id.empty() || !options.secret_access_key.empty()) {
    return fixed({options.access_key_id, options.secret_access_key, options.session_token}, "command line",
                 "on the command line");
  }
  // A profile named on the command line is more special than keys left over in the environment.
  const std::string id = variable(options, "AWS_ACCESS_KEY_ID");
  const std::string secret = variable(options, "AWS_SECRET_ACCESS_KEY");
  if (options.profile.empty() && (!id.empty() || !secret.empty())) {
    return fixed({id, secret, variable(options, "AWS_SESSION_TOKEN")}, "environment",
                 "in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)");
  }
  const auto place = profile_place(options);
  TRY_ASSIGN(auto keys, load_profile_keys(place));
  return std::make_shared<ProfileProvider>(place, std::move(keys));
}

std::string default_region(const CredentialOptions& options) {
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    if (auto value = variable(options, name); !value.empty()) return value;
  }
  return profile_setting(profile_place(options), "region");
}

std::string default_endpoint(const CredentialOptions& options) {
  if (variable(options, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") == "true") return {};
  for (const char* name : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}) {
    if (auto value = variable(options, name); !value.empty()) return value;
  }
  return profile_endpoint(profile_place(options));
}

}  // namespace thermo::store
