#include "app/goofys.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace thermo::app {
namespace {

TEST(GoDuration, Translated) {
  for (const auto& [text, ours] : {std::pair{"0", Nanos(0)},
                                   {"1m30s", Nanos(90'000'000'000)},
                                   {"1.5h", Nanos(5'400'000'000'000)},
                                   {"250ms", Nanos(250'000'000)}}) {
    const auto translated = translate_go_duration(text);
    ASSERT_TRUE(translated) << text;
    EXPECT_EQ(*parse_duration(*translated), ours) << text;
  }
}

// Each part fits, the sum does not: it must be refused here, because the flag's reader takes it for granted.
TEST(GoDuration, TooLongASumIsRefused) {
  for (const char* text : {"600000h1200000h", "640511h1280000h", "1200000h600000h", "292y", "1d", ""}) {
    const auto translated = translate_go_duration(text);
    if (translated) ADD_FAILURE() << text << " became " << *translated;
  }
  const std::vector<std::string> args = {"--stat-cache-ttl", "600000h1200000h", "my-bucket", "/mnt/t"};
  EXPECT_FALSE(rewrite_goofys(args));
}

TEST(Goofys, PrefixThatEndsInTwoSlashesIsKept) {
  const std::vector<std::string> args = {"my-bucket:a//", "/mnt/t"};
  const auto rewritten = rewrite_goofys(args);
  ASSERT_TRUE(rewritten);
  EXPECT_EQ(rewritten->args[rewritten->args.size() - 2], "s3://my-bucket/a//");
}

}  // namespace
}  // namespace thermo::app
