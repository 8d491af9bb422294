#include "s3sim/pacer.h"

#include <sys/socket.h>

#include <thread>

namespace thermo::s3sim {
namespace {
/// Shorter waits are not worth the lock: a stop notices soon enough.
constexpr Nanos kPlainSleep = std::chrono::milliseconds(20);
}  // namespace

bool Stopper::sleep_until(MonoTime until) {
  const Clock& clock = Clock::system();
  const MonoTime now = clock.now();
  if (until <= now) return !stopped();
  if (until - now <= kPlainSleep) {
    std::this_thread::sleep_until(until);
    return !stopped();
  }
  MutexLock lock(mutex_);
  while (!stopped() && changed_.wait_until(mutex_, until)) {
  }
  return !stopped();
}

void Stopper::stop() {
  MutexLock lock(mutex_);
  stopped_.store(true);
  for (const int fd : fds_) ::shutdown(fd, SHUT_RDWR);
  changed_.notify_all();
}

void Stopper::watch(int fd) {
  MutexLock lock(mutex_);
  fds_.insert(fd);
  if (stopped()) ::shutdown(fd, SHUT_RDWR);
}

void Stopper::forget(int fd) {
  MutexLock lock(mutex_);
  fds_.erase(fd);
}

}  // namespace thermo::s3sim
