#pragma once
// A thread that calls a function a few times a second.

#include <functional>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"

namespace thermo::fuse {

/// Thread-safe. `tick` must not wait for anything that waits for the next tick.
class Ticker {
 public:
  Ticker(Nanos interval, std::function<void()> tick) : interval_(interval), tick_(std::move(tick)) {}
  ~Ticker() { stop(); }
  void start(const char* thread_name);
  /// Joins. Idempotent.
  void stop();

 private:
  void run();

  const Nanos interval_;
  const std::function<void()> tick_;
  Mutex mutex_{LockRank::kNotify, "fuse ticker"};
  CondVar wake_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace thermo::fuse
