#pragma once
// Structured log: level, time, request id, message. To stderr, a file or syslog. Secrets are masked by whoever formats them
// (see net::mask_secret); a log line never holds one.

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace thermo::log {

enum class Level : std::uint8_t { kDebug, kInfo, kWarn, kError };
/// What the --debug_* switches turn on; each can change at run time.
enum class Channel : std::uint8_t { kFuse, kS3 };

struct Options {
  Level level = Level::kInfo;
  std::string target = "stderr";  ///< "stderr", "syslog" or a file path (appended to)
};

/// Replaces the log target; thread-safe. Before the first call lines go to stderr at level info.
[[nodiscard]] Result<void> configure(const Options& options);

void set_level(Level level);
[[nodiscard]] bool enabled(Level level);
void set_channel(Channel channel, bool on);
[[nodiscard]] bool channel_enabled(Channel channel);

/// The functions below format only if the line is wanted.
void write(Level level, std::string_view line);
void vlog(Level level, fmt::string_view format, fmt::format_args args);
/// A line of a debug channel, whatever the level is.
void vtrace(Channel channel, fmt::string_view format, fmt::format_args args);

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kDebug)) vlog(Level::kDebug, format, fmt::make_format_args(args...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kInfo)) vlog(Level::kInfo, format, fmt::make_format_args(args...));
}
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kWarn)) vlog(Level::kWarn, format, fmt::make_format_args(args...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kError)) vlog(Level::kError, format, fmt::make_format_args(args...));
}
template <class... Args>
void trace(Channel channel, fmt::format_string<Args...> format, Args&&... args) {
  if (channel_enabled(channel)) vtrace(channel, format, fmt::make_format_args(args...));
}

/// Lets at most one line through per `interval`; counts the rest. For errors that could flood (disk full). Thread-safe.
class RateLimit {
 public:
  explicit RateLimit(Nanos interval, const Clock& clock = Clock::system()) : interval_(interval), clock_(clock) {}
  /// True when this line may go out; `suppressed` gets how many were held back since the last one.
  [[nodiscard]] bool allow(std::uint64_t& suppressed);

 private:
  const Nanos interval_;
  const Clock& clock_;
  std::int64_t next_ = 0;         // atomic_ref, nanoseconds of MonoTime
  std::uint64_t suppressed_ = 0;  // atomic_ref
};

}  // namespace thermo::log
