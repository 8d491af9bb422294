#include "front/fuse/ticker.h"

#include <pthread.h>
#include <signal.h>

namespace thermo::fuse {

void Ticker::start(const char* thread_name) {
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), thread_name);
}

void Ticker::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void Ticker::run() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  mutex_.lock();
  while (!stopping_) {
    const auto next = Clock::system().now() + interval_;
    while (!stopping_ && wake_.wait_until(mutex_, next)) {
    }
    if (stopping_) break;
    mutex_.unlock();
    tick_();
    mutex_.lock();
  }
  mutex_.unlock();
}

}  // namespace thermo::fuse
