// The config file: any bytes give settings or an error that names file and line, and settings that are printed read back the
// same.

#include <cmath>

#include "app/config_file.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thermo;
  const auto text = fuzz::text_of(data, size);
  app::Settings settings;
  if (const auto parsed = app::parse_config(text, "thermo.toml", settings); !parsed) {
    FUZZ_CHECK(parsed.error().code() == ErrorCode::kInvalidArgument);
    FUZZ_CHECK(parsed.error().message().starts_with("thermo.toml:"));
    return 0;
  }
  app::Settings again;
  FUZZ_CHECK(app::parse_config(settings.to_toml(), "printed.toml", again));
  constexpr std::uint64_t kDisk = std::uint64_t{10} << 40;
  for (const auto& spec : app::option_table()) {
    FUZZ_CHECK(settings.text(spec.name) == again.text(spec.name));
    // What was let in always has a value of its kind.
    switch (spec.kind) {
      case app::Kind::kShare:
        if (settings.text(spec.name).ends_with('%')) FUZZ_CHECK(settings.share(spec.name, kDisk) <= kDisk);
        break;
      case app::Kind::kSize: FUZZ_CHECK(settings.size(spec.name) > 0); break;
      case app::Kind::kDuration: FUZZ_CHECK(settings.duration(spec.name) > Nanos(0)); break;
      case app::Kind::kFreshness: FUZZ_CHECK(settings.ttl(spec.name).value >= Nanos(0)); break;
      case app::Kind::kMode: FUZZ_CHECK(settings.mode(spec.name) <= 0777); break;
      case app::Kind::kCount: FUZZ_CHECK(settings.count(spec.name) > 0); break;
      case app::Kind::kLevel: (void)settings.level(spec.name); break;
      default: break;
    }
  }
  return 0;
}
