#include "app/config_file.h"

#include <gtest/gtest.h>

namespace thermo::app {
namespace {

std::string refusal(std::string_view text) {
  Settings settings;
  const auto parsed = parse_config(text, "thermo.toml", settings);
  return parsed ? std::string() : std::string(parsed.error().message());
}

// Some of these stop the TOML library by an assertion in builds that have them.
TEST(ConfigFile, BrokenHeadersAreRefusedWithTheirLine) {
  for (const char* text : {"\n[\x01", "\n[.]", "\n[[=]]", "\n[\xc3\xa9]", "\n[\"", "\n[a.\x7f]"}) {
    EXPECT_EQ(refusal(text).rfind("thermo.toml:2: ", 0), 0U) << text << " gave: " << refusal(text);
  }
}

TEST(ConfigFile, LettersBeyondAsciiOutsideOfQuotesAreRefused) {
  for (const char* text : {"\n\xc3\xa9 = 1", "\n[cache] \xc3\xa9",
                           "\n[c\xd2\x99"
                           "che]",
                           "\n[cache\xe2\xbf\xbf]"}) {
    EXPECT_EQ(refusal(text).rfind("thermo.toml:2: ", 0), 0U) << text << " gave: " << refusal(text);
  }
}

}  // namespace
}  // namespace thermo::app
