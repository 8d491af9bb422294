#pragma once
// Whether the tier's device may be read and written right now. A state machine: errors and probes in, permissions out; time
// passed in.

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"

namespace thermo::cache {

/// ok -> degraded after a failed write (reads go on), -> failed after many failed reads; back to ok by a probe only.
enum class DeviceCondition : std::uint8_t { kOk, kDegraded, kFailed };
[[nodiscard]] std::string_view to_string(DeviceCondition condition);

/// Thread-safe.
class DeviceState {
 public:
  static constexpr Nanos kProbeInterval = std::chrono::seconds(5);
  static constexpr Nanos kErrorWindow = std::chrono::seconds(10);
  static constexpr std::size_t kErrorsToFail = 8;  ///< failed reads within kErrorWindow

  explicit DeviceState(const Clock& clock);

  void write_failed(const Error& error);
  void read_failed(const Error& error);

  [[nodiscard]] bool may_write() const { return condition_.load(std::memory_order_relaxed) == DeviceCondition::kOk; }
  [[nodiscard]] bool may_read() const { return condition_.load(std::memory_order_relaxed) != DeviceCondition::kFailed; }
  [[nodiscard]] DeviceCondition condition() const { return condition_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::string reason() const;

  /// True once per kProbeInterval while the state is not ok.
  [[nodiscard]] bool probe_due();
  void probe_succeeded();
  void probe_failed(const Error& error);

 private:
  void worsen(DeviceCondition to, const Error& error) REQUIRES(mutex_);

  const Clock& clock_;
  log::RateLimit log_limit_;
  std::atomic<DeviceCondition> condition_{DeviceCondition::kOk};
  mutable Mutex mutex_{LockRank::kCacheDevice, "device state"};
  std::string reason_ GUARDED_BY(mutex_);
  MonoTime next_probe_ GUARDED_BY(mutex_){};
  std::deque<MonoTime> read_errors_ GUARDED_BY(mutex_);  // at most kErrorsToFail
};

}  // namespace thermo::cache
