#include "store/s3/s3_dates.h"

#include <array>
#include <chrono>

namespace thermo::store {
namespace {

constexpr WallNanos kSecond = 1'000'000'000;

// `count` decimal digits at `at`; -1 when they are none.
int digits(std::string_view text, std::size_t at, std::size_t count) {
  int value = 0;
  if (at + count > text.size()) return -1;
  for (std::size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

std::optional<WallNanos> combine(int y, int mon, int d, int h, int min, int s) {
  using namespace std::chrono;
  // The years that 64-bit nanoseconds can tell.
  if (y < 1900 || y > 2200 || mon < 1 || d < 1 || h < 0 || h > 23 || min < 0 || min > 59 || s < 0 || s > 60) return std::nullopt;
  const year_month_day date{year(y), month(static_cast<unsigned>(mon)), day(static_cast<unsigned>(d))};
  if (!date.ok()) return std::nullopt;
  return duration_cast<nanoseconds>((sys_days(date) + hours(h) + minutes(min) + seconds(s)).time_since_epoch()).count();
}

}  // namespace

std::optional<WallNanos> parse_iso_date(std::string_view t) {
  if (t.size() < 20 || t[4] != '-' || t[7] != '-' || t[10] != 'T' || t[13] != ':' || t[16] != ':') return std::nullopt;
  const auto whole =
      combine(digits(t, 0, 4), digits(t, 5, 2), digits(t, 8, 2), digits(t, 11, 2), digits(t, 14, 2), digits(t, 17, 2));
  if (!whole) return std::nullopt;
  WallNanos fraction = 0;
  std::size_t at = 19;
  if (t[at] == '.') {
    WallNanos unit = kSecond / 10;
    for (++at; at < t.size() && t[at] >= '0' && t[at] <= '9'; ++at, unit /= 10) fraction += (t[at] - '0') * unit;
  }
  if (t.substr(at) != "Z" && t.substr(at) != "+00:00") return std::nullopt;
  return *whole + fraction;
}

std::optional<WallNanos> parse_http_date(std::string_view t) {
  constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::size_t comma = t.find(", ");
  if (comma == std::string_view::npos) return std::nullopt;
  t.remove_prefix(comma + 2);
  if (t.size() != 24 || t.substr(20) != " GMT" || t[14] != ':' || t[17] != ':') return std::nullopt;
  int month = 0;
  for (std::size_t i = 0; i < kMonths.size(); ++i) {
    if (t.substr(3, 3) == kMonths[i]) month = static_cast<int>(i) + 1;
  }
  return combine(digits(t, 7, 4), month, digits(t, 0, 2), digits(t, 12, 2), digits(t, 15, 2), digits(t, 18, 2));
}

}  // namespace thermo::store
