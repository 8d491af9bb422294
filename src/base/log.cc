#include "base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>

#include "base/mutex.h"

namespace thermo::log {
namespace {

std::atomic<Level> current_level{Level::kInfo};
std::atomic<bool> channels[2]{};

struct Target {
  Mutex mutex{LockRank::kLeaf, "log target"};
  std::shared_ptr<spdlog::logger> logger GUARDED_BY(mutex);
};

Target& target() {
  static Target* instance = new Target;  // loggers may still write while statics are destroyed
  return *instance;
}

std::shared_ptr<spdlog::logger> make_logger(spdlog::sink_ptr sink) {
  auto logger = std::make_shared<spdlog::logger>("thermo", std::move(sink));
  logger->set_level(spdlog::level::trace);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %L %v");
  logger->flush_on(spdlog::level::trace);
  return logger;
}

std::shared_ptr<spdlog::logger> current_logger() {
  auto& t = target();
  MutexLock lock(t.mutex);
  if (!t.logger) t.logger = make_logger(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  return t.logger;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug: return spdlog::level::debug;
    case Level::kInfo: return spdlog::level::info;
    case Level::kWarn: return spdlog::level::warn;
    case Level::kError: return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

Result<void> configure(const Options& options) {
  std::shared_ptr<spdlog::logger> logger;
  try {
    if (options.target == "stderr") {
      logger = make_logger(std::make_shared<spdlog::sinks::stderr_sink_mt>());
    } else if (options.target == "syslog") {
      logger = make_logger(std::make_shared<spdlog::sinks::syslog_sink_mt>("thermo", LOG_PID, LOG_DAEMON, false));
      logger->set_pattern("%v");
    } else {
      logger = make_logger(std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.target));
    }
  } catch (const spdlog::spdlog_ex& e) {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("cannot log to '{}': {}; give --log stderr, syslog or a file that can be written", options.target, e.what()));
  }
  current_level.store(options.level, std::memory_order_relaxed);
  auto& t = target();
  MutexLock lock(t.mutex);
  t.logger = std::move(logger);
  return {};
}

void set_level(Level level) { current_level.store(level, std::memory_order_relaxed); }
bool enabled(Level level) { return level >= current_level.load(std::memory_order_relaxed); }
void set_channel(Channel channel, bool on) { channels[static_cast<int>(channel)].store(on, std::memory_order_relaxed); }
bool channel_enabled(Channel channel) { return channels[static_cast<int>(channel)].load(std::memory_order_relaxed); }

void write(Level level, std::string_view line) {
  current_logger()->log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

void vlog(Level level, fmt::string_view format, fmt::format_args args) { write(level, fmt::vformat(format, args)); }

void vtrace(Channel channel, fmt::string_view format, fmt::format_args args) {
  write(Level::kInfo, (channel == Channel::kFuse ? "fuse " : "s3 ") + fmt::vformat(format, args));
}

bool RateLimit::allow(std::uint64_t& suppressed) {
  const std::int64_t now = clock_.now().time_since_epoch().count();
  std::atomic_ref<std::int64_t> next(next_);
  std::atomic_ref<std::uint64_t> held(suppressed_);
  std::int64_t due = next.load(std::memory_order_relaxed);
  if (now < due || !next.compare_exchange_strong(due, now + interval_.count(), std::memory_order_relaxed)) {
    held.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  suppressed = held.exchange(0, std::memory_order_relaxed);
  return true;
}

}  // namespace thermo::log
