#include "catalog/vouching.h"

#include "catalog/key_layout.h"

namespace thermo::catalog {

Vouching::Token Vouching::begin(const std::string& prefix, WallNanos since) {
  {
    MutexLock lock(mutex_);
    open_[prefix].insert(since);
  }
  return {nullptr, [this, prefix, since](const void*) {
            MutexLock lock(mutex_);
            const auto it = open_.find(prefix);
            it->second.erase(it->second.find(since));
            if (it->second.empty()) open_.erase(it);
          }};
}

bool Vouching::overtakes(std::string_view prefix, bool deep, WallNanos started) const {
  MutexLock lock(mutex_);
  if (open_.empty()) return false;
  for (std::string_view at = prefix;; at = parent_prefix(at)) {
    const auto it = open_.find(at);
    if (it != open_.end() && *it->second.rbegin() > started) return true;
    if (at.empty()) break;
  }
  if (!deep) return false;
  for (auto it = open_.lower_bound(prefix); it != open_.end() && it->first.starts_with(prefix); ++it) {
    if (*it->second.rbegin() > started) return true;
  }
  return false;
}

}  // namespace thermo::catalog
