#include "cache/held_pages.h"

namespace thermo::cache {

void HeldPages::add(Page page) {
  MutexLock lock(mutex_);
  bytes_ += page.bytes;
  pages_.push_back(std::move(page));
}

bool HeldPages::over_limit() const {
  MutexLock lock(mutex_);
  return bytes_ > limit_;
}

bool HeldPages::take(Page& out) {
  if (pages_.empty()) return false;
  out = std::move(pages_.front());
  pages_.pop_front();
  bytes_ -= out.bytes;
  return true;
}

bool HeldPages::take_oldest(Page& out) {
  MutexLock lock(mutex_);
  return take(out);
}

bool HeldPages::take_older(MonoTime than, Page& out) {
  MutexLock lock(mutex_);
  return !pages_.empty() && pages_.front().since < than && take(out);
}

std::uint64_t HeldPages::bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

std::size_t HeldPages::count() const {
  MutexLock lock(mutex_);
  return pages_.size();
}

}  // namespace thermo::cache
