// What people and mount(8) write about a mount: -o lists, goofys' command line, Go's durations; and the kernel's table of mounts.
// Words of a command line are separated by newlines.

#include <vector>

#include "app/goofys.h"
#include "app/store_url.h"
#include "base/units.h"
#include "front/fuse/mount_options.h"
#include "front/fuse/mount_table.h"
#include "fuzz/fuzz.h"

namespace thermo::fuzz {
namespace {

void check_options(std::string_view text) {
  const auto options = fuse::parse_mount_options(text);
  if (options) {
    const auto again = fuse::parse_mount_options(fuse::flag_words(options->flags));
    FUZZ_CHECK(again && again->flags == options->flags);
  } else {
    FUZZ_CHECK(options.error().code() == ErrorCode::kInvalidArgument);
  }
  const auto lifted = app::lift_options(text);
  for (const auto& flag : lifted.flags) FUZZ_CHECK(flag.size() > 1 || flag == "-");
  FUZZ_CHECK(lifted.words.size() <= text.size());
  if (const auto time = app::translate_go_duration(text)) {
    const auto ours = parse_duration(*time);
    FUZZ_CHECK(ours && *ours >= Nanos(0));
  }
}

void check_command_line(std::string_view text) {
  std::vector<std::string> words;
  for (Input input(text); !input.empty();) words.emplace_back(input.line());
  const auto rewritten = app::rewrite_goofys(words);
  if (!rewritten) {
    FUZZ_CHECK(rewritten.error().code() == ErrorCode::kInvalidArgument);
  } else if (rewritten->args.size() >= 3) {
    // The bucket and the mount point, as they were meant, come last.
    const auto& args = rewritten->args;
    FUZZ_CHECK(args[args.size() - 3] == "--");
    FUZZ_CHECK(app::parse_store_url(args[args.size() - 2], false));
  }
  if (const auto call = app::parse_mount_helper(words)) FUZZ_CHECK(call->args.size() <= words.size());
}

void check_table(std::string_view text) {
  std::size_t bytes = 0;
  for (const auto& mount : fuse::parse_mountinfo(text)) {
    FUZZ_CHECK(!mount.path.empty() && !mount.type.empty());
    bytes += mount.path.size() + mount.type.size() + mount.source.size() + mount.options.size();
  }
  FUZZ_CHECK(bytes <= text.size());
}

}  // namespace
}  // namespace thermo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thermo;
  const auto text = fuzz::text_of(data, size);
  fuzz::check_options(text);
  fuzz::check_options(text.substr(0, text.find('\n')));
  fuzz::check_command_line(text);
  fuzz::check_table(text);
  return 0;
}
