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

void OpenFiles::opened(const EntryPtr& entry) {
  EntryPtr oldest;
  {
    MutexLock lock(mutex_);
    order_.push_back(entry);
    if (order_.size() <= limit_) return;
    oldest = order_.front().lock();
    order_.pop_front();
  }
  if (!oldest || oldest == entry) return;
  FilesPtr closing;  // closed after the lock is gone
  MutexLock lock(oldest->mutex);
  closing.swap(oldest->files);
}

}  // namespace thermo::cache
