#include "base/mutex.h"

#include <cstdio>
#include <cstdlib>

namespace thermo {

#ifdef THERMO_CHECK_LOCKS
namespace {

struct Held {
  LockRank rank;
  const char* name;
  const Mutex* mutex;
};
constexpr int kMaxHeld = 16;
thread_local Held held[kMaxHeld];
thread_local int held_count = 0;

}  // namespace

void Mutex::check_order() const {
  for (int i = 0; i < held_count; ++i) {
    if (static_cast<int>(held[i].rank) >= static_cast<int>(rank_)) {
      std::fprintf(stderr, "lock order: '%s' (rank %d) taken while '%s' (rank %d) is held\n", name_, static_cast<int>(rank_),
                   held[i].name, static_cast<int>(held[i].rank));
      std::abort();
    }
  }
}

void Mutex::note_locked() const {
  if (held_count < kMaxHeld) held[held_count++] = {rank_, name_, this};
}

void Mutex::note_unlocked() const {
  for (int i = held_count - 1; i >= 0; --i) {
    if (held[i].mutex != this) continue;
    for (int j = i; j + 1 < held_count; ++j) held[j] = held[j + 1];
    --held_count;
    return;
  }
}
#else
void Mutex::check_order() const {}
void Mutex::note_locked() const {}
void Mutex::note_unlocked() const {}
#endif

void Mutex::lock() {
  check_order();
  mutex_.lock();
  note_locked();
}

void Mutex::unlock() {
  note_unlocked();
  mutex_.unlock();
}

bool Mutex::try_lock() {
  if (!mutex_.try_lock()) return false;
  note_locked();
  return true;
}

void CondVar::wait(Mutex& mutex) {
  mutex.note_unlocked();
  std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
  cv_.wait(lock);
  lock.release();
  mutex.note_locked();
}

bool CondVar::wait_until(Mutex& mutex, MonoTime until) {
  mutex.note_unlocked();
  std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
  const bool in_time = cv_.wait_until(lock, until) == std::cv_status::no_timeout;
  lock.release();
  mutex.note_locked();
  return in_time;
}

}  // namespace thermo
