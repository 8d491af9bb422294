#include "cache/open_files.h"

#include <sys/resource.h>

#include <algorithm>

namespace thermo::cache {

std::size_t OpenFiles::limit_of_process() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 256;
  // Two files per object, and half of the descriptors are for connections and the database.
  return std::clamp<std::size_t>(static_cast<std::size_t>(limit.rlim_cur) / 4, 16, 65536);
}

void OpenFiles::close(const EntryPtr& entry) {
  FilesPtr closing;  // closed after the lock is gone
  MutexLock lock(entry->mutex);
  closing.swap(entry->files);
}

void OpenFiles::opened(const EntryPtr& entry) {
  EntryPtr oldest;
  {
    MutexLock lock(mutex_);
    order_.push_back(entry);
    if (order_.size() <= limit_) return;
    oldest = order_.front().lock();
    order_.pop_front();
  }
  if (oldest && oldest != entry) close(oldest);
}

bool OpenFiles::close_some() {
  std::vector<EntryPtr> oldest;
  {
    MutexLock lock(mutex_);
    while (!order_.empty() && oldest.size() < kSome) {
      if (auto entry = order_.front().lock()) oldest.push_back(std::move(entry));
      order_.pop_front();
    }
  }
  for (const auto& entry : oldest) close(entry);
  return !oldest.empty();
}

}  // namespace thermo::cache
