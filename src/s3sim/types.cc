#include "s3sim/types.h"

#include <unistd.h>

#include <ctime>

namespace thermo::s3sim {
namespace {

std::string format_time(WallNanos wall, const char* format) {
  const std::time_t seconds = static_cast<std::time_t>(wall / 1'000'000'000);
  std::tm tm{};
  ::gmtime_r(&seconds, &tm);
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, format, &tm));
}

}  // namespace

OpenFile::~OpenFile() { ::close(fd_); }

// The locale stays "C" in this program, so the names of days and months are the English ones that HTTP wants.
std::string iso_time(WallNanos wall) { return format_time(wall, "%Y-%m-%dT%H:%M:%S.000Z"); }
std::string http_time(WallNanos wall) { return format_time(wall, "%a, %d %b %Y %H:%M:%S GMT"); }

}  // namespace thermo::s3sim
