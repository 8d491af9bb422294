// The chain of places, profiles, rotation, and messages that say what is missing.

#include "store/s3/credentials.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "store/s3/ini_file.h"

namespace thermo::store {
namespace {

class CredentialsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = ::testing::TempDir() + "credentials-XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    home_ = path;
    std::filesystem::create_directory(home_ + "/.aws");
    options_.home = home_;
  }
  void TearDown() override { std::filesystem::remove_all(home_); }
  static void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::trunc) << text; }
  void credentials_file(const std::string& text) const { write(home_ + "/.aws/credentials", text); }
  void config_file(const std::string& text) const { write(home_ + "/.aws/config", text); }
  // "id/secret/token", or the error's message.
  std::string keys() const {
    auto provider = make_credentials(options_);
    return provider ? keys_of(**provider) : "!" + std::string(provider.error().message());
  }
  static std::string keys_of(CredentialProvider& provider) {
    auto got = provider.get({});
    if (!got) return "!" + std::string(got.error().message());
    return got->anonymous ? "anonymous" : got->key.id + "/" + got->key.secret + "/" + got->key.session_token;
  }
  std::string home_;
  CredentialOptions options_;
};

TEST_F(CredentialsTest, ChainOrder) {
  config_file("[default]\naws_access_key_id=C\naws_secret_access_key=c\n");
  EXPECT_EQ(keys(), "C/c/");
  credentials_file("[default]\naws_access_key_id = F\naws_secret_access_key = f\naws_session_token = ft\n");
  EXPECT_EQ(keys(), "F/f/ft");
  options_.environment = {{"AWS_ACCESS_KEY_ID", "E"}, {"AWS_SECRET_ACCESS_KEY", "e"}, {"AWS_SESSION_TOKEN", "et"}};
  EXPECT_EQ(keys(), "E/e/et");
  options_.access_key_id = "A";
  options_.secret_access_key = "a";
  EXPECT_EQ(keys(), "A/a/");
  options_.anonymous = true;
  EXPECT_EQ(keys(), "anonymous");
}

TEST_F(CredentialsTest, NamedProfiles) {
  credentials_file(
      "[default]\naws_access_key_id=D\naws_secret_access_key=d\n[team]\naws_access_key_id=T\naws_secret_access_key=t\n");
  config_file("[profile conf]\naws_access_key_id=C\naws_secret_access_key=c\n");
  options_.environment["AWS_PROFILE"] = "team";
  EXPECT_EQ(keys(), "T/t/");
  options_.profile = "conf";
  EXPECT_EQ(keys(), "C/c/");
  // A profile named on the command line wins over keys left in the environment; AWS_PROFILE does not.
  options_.environment.insert({{"AWS_ACCESS_KEY_ID", "E"}, {"AWS_SECRET_ACCESS_KEY", "e"}});
  EXPECT_EQ(keys(), "C/c/");
  options_.profile.clear();
  EXPECT_EQ(keys(), "E/e/");
}

TEST_F(CredentialsTest, FilesElsewhereAndNoHome) {
  write(home_ + "/mine", "[default]\naws_access_key_id=M\naws_secret_access_key=m\n");
  options_.environment["AWS_SHARED_CREDENTIALS_FILE"] = home_ + "/mine";
  EXPECT_EQ(keys(), "M/m/");
  options_.environment["AWS_SHARED_CREDENTIALS_FILE"] = "~/mine";
  EXPECT_EQ(keys(), "M/m/");
  options_.home.clear();
  options_.environment.clear();
  EXPECT_NE(keys().find("no home folder known"), std::string::npos) << keys();
}

TEST_F(CredentialsTest, NothingFoundNamesEveryPlace) {
  auto provider = make_credentials(options_);
  ASSERT_FALSE(provider);
  EXPECT_EQ(provider.error().code(), ErrorCode::kAccessDenied);
  for (const std::string& place : {std::string("AWS_ACCESS_KEY_ID"), home_ + "/.aws/credentials", home_ + "/.aws/config",
                                   std::string("--no-sign-request")}) {
    EXPECT_NE(provider.error().message().find(place), std::string::npos) << provider.error().message();
  }
}

TEST_F(CredentialsTest, MissingProfileListsThoseThatExist) {
  credentials_file("[alpha]\n[beta]\n");
  config_file("[profile gamma]\n[sso-session x]\n");
  options_.profile = "delta";
  auto provider = make_credentials(options_);
  ASSERT_FALSE(provider);
  EXPECT_EQ(provider.error().code(), ErrorCode::kInvalidArgument);
  const std::string message(provider.error().message());
  for (const char* part : {"'delta'", "'alpha'", "'beta'", "'gamma'"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_EQ(message.find("sso-session"), std::string::npos);
}

TEST_F(CredentialsTest, HalfAKeyIsAnError) {
  credentials_file("[default]\naws_access_key_id=D\n");
  EXPECT_NE(keys().find("only one of"), std::string::npos);
  options_.environment["AWS_SECRET_ACCESS_KEY"] = "topsecret";
  EXPECT_NE(keys().find("AWS_ACCESS_KEY_ID"), std::string::npos);
  EXPECT_EQ(keys().find("topsecret"), std::string::npos);
}

TEST_F(CredentialsTest, UnsupportedKindsAreNamed) {
  for (const char* setting :
       {"role_arn", "sso_session", "sso_start_url", "web_identity_token_file", "credential_process", "credential_source"}) {
    config_file(std::string("[profile p]\n") + setting + " = something\n");
    options_.profile = "p";
    auto provider = make_credentials(options_);
    ASSERT_FALSE(provider) << setting;
    EXPECT_EQ(provider.error().code(), ErrorCode::kNotSupported);
    EXPECT_NE(provider.error().message().find(setting), std::string::npos);
  }
  // A role stands above keys of the same profile: using the keys would mean acting as somebody else.
  config_file("[profile p]\nrole_arn = r\naws_access_key_id=C\naws_secret_access_key=c\n");
  EXPECT_EQ(keys()[0], '!');
}

TEST_F(CredentialsTest, RotationIsSeenWithinASecondOrAtOnceWhenRefused) {
  const auto write_keys = [&](const std::string& id) {
    credentials_file("[default]\naws_access_key_id=" + id + "\naws_secret_access_key=s\n");
  };
  write_keys("ONE");
  auto provider = make_credentials(options_);
  ASSERT_TRUE(provider);
  EXPECT_EQ(keys_of(**provider), "ONE/s/");
  write_keys("SECOND");
  EXPECT_TRUE((*provider)->invalidate());
  EXPECT_EQ(keys_of(**provider), "SECOND/s/");
  write_keys("THREE");
  EXPECT_EQ(keys_of(**provider), "SECOND/s/");  // looked at most once a second
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  EXPECT_EQ(keys_of(**provider), "THREE/s/");
  credentials_file("[default]\naws_access_key");  // half-written
  (*provider)->invalidate();
  EXPECT_EQ(keys_of(**provider), "THREE/s/");
  write_keys("FOUR");
  (*provider)->invalidate();
  EXPECT_EQ(keys_of(**provider), "FOUR/s/");
  EXPECT_EQ((*provider)->describe(), "profile 'default' of " + home_ + "/.aws/credentials");
}

TEST_F(CredentialsTest, FixedKeysHaveNothingNewer) {
  options_.access_key_id = "A";
  options_.secret_access_key = "a";
  auto provider = make_credentials(options_);
  ASSERT_TRUE(provider);
  EXPECT_FALSE((*provider)->invalidate());
}

TEST_F(CredentialsTest, RegionAndEndpoint) {
  EXPECT_EQ(default_region(options_), "");
  EXPECT_EQ(default_endpoint(options_), "");
  config_file(
      "[profile p]\nregion = eu-west-1 # near\nendpoint_url = http://own:1\n[profile s]\nservices = "
      "lab\nendpoint_url=http://own:2\n"
      "[services lab]\ndynamodb =\n  endpoint_url = http://no:1\ns3 =\n  endpoint_url = http://s3:3\n");
  options_.profile = "p";
  EXPECT_EQ(default_region(options_), "eu-west-1");
  EXPECT_EQ(default_endpoint(options_), "http://own:1");
  options_.profile = "s";
  EXPECT_EQ(default_endpoint(options_), "http://s3:3");
  options_.environment["AWS_DEFAULT_REGION"] = "r1";
  options_.environment["AWS_ENDPOINT_URL"] = "http://env";
  EXPECT_EQ(default_region(options_), "r1");
  EXPECT_EQ(default_endpoint(options_), "http://env");
  options_.environment["AWS_REGION"] = "r2";
  options_.environment["AWS_ENDPOINT_URL_S3"] = "http://env3";
  EXPECT_EQ(default_region(options_), "r2");
  EXPECT_EQ(default_endpoint(options_), "http://env3");
  options_.environment["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "true";
  EXPECT_EQ(default_endpoint(options_), "");
}

TEST(Ini, DialectOfTheSharedFiles) {
  const auto ini = parse_ini(
      "\xEF\xBB\xBF; comment\n# another\nlost = 1\n[ profile  \"my name\" ]\r\nKey = a=b #c\nkey2=v ; "
      "c\nsecret=a#b;c\n[default]\nbroken line\nx =\n  y = 1\n"
      "z = 2\n  w = 3\n[profile my name]\nkey3 = more\n[unclosed\nnot = seen\n");
  EXPECT_EQ(ini.at("profile my name").at("key"), "a=b");
  EXPECT_EQ(ini.at("profile my name").at("key2"), "v");
  EXPECT_EQ(ini.at("profile my name").at("secret"), "a#b;c");
  EXPECT_EQ(ini.at("profile my name").at("key3"), "more");
  EXPECT_EQ(ini.at("default").at("x.y"), "1");
  EXPECT_EQ(ini.at("default").at("w"), "3");
  EXPECT_EQ(ini.size(), 2U);
}

}  // namespace
}  // namespace thermo::store
