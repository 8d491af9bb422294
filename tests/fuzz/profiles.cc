// Files and headers that others write: shared credentials and config files, dates of S3 answers, the trailer of Parquet files.

#include "fuzz/fuzz.h"
#include "read/footer.h"
#include "store/s3/ini_file.h"
#include "store/s3/s3_dates.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thermo;
  const auto text = fuzz::text_of(data, size);
  for (const auto& [section, values] : store::parse_ini(text)) {
    FUZZ_CHECK(section.size() <= size && section.find('\n') == std::string::npos);
    for (const auto& [name, value] : values) {
      FUZZ_CHECK(name.find('\n') == std::string::npos && value.find('\n') == std::string::npos);
      FUZZ_CHECK(value.empty() || (value.front() != ' ' && value.back() != ' '));
    }
  }
  constexpr WallNanos kYear = WallNanos{366} * 86400 * 1'000'000'000;
  for (const auto date : {store::parse_iso_date(text), store::parse_http_date(text)}) {
    if (date) FUZZ_CHECK(*date > -100 * kYear && *date < 240 * kYear);
  }
  (void)read::parquet_footer_length(std::as_bytes(std::span(data, size)));
  FUZZ_CHECK(!read::has_footer(text) || text.size() >= 4);
  return 0;
}
