#include "catalog/floors.h"

#include <algorithm>

#include "catalog/key_layout.h"

namespace thermo::catalog {

void Floors::expire(std::string_view key_or_prefix, WallNanos at) {
  MutexLock lock(mutex_);
  if (floors_.size() >= kLimit && !floors_.contains(key_or_prefix)) key_or_prefix = {};
  if (key_or_prefix.empty()) {
    // One for everything, not before any that it takes the place of.
    for (const auto& [path, floor] : floors_) at = std::max(at, floor);
    floors_.clear();
  }
  auto& floor = floors_[std::string(key_or_prefix)];
  floor = std::max(floor, at);
}

WallNanos Floors::at(std::string_view path) const {
  const auto it = floors_.find(path);
  return it == floors_.end() ? 0 : it->second;
}

WallNanos Floors::above(std::string_view path) const {
  WallNanos newest = at({});
  for (std::size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
    newest = std::max(newest, at(path.substr(0, slash + 1)));
  }
  return newest;
}

WallNanos Floors::of_key(std::string_view key) const {
  MutexLock lock(mutex_);
  return at(key);
}

WallNanos Floors::for_name(std::string_view path) const {
  MutexLock lock(mutex_);
  if (floors_.empty()) return 0;
  return std::max({above(path), at(path), at(std::string(path) + "/")});
}

WallNanos Floors::for_listing(std::string_view prefix) const {
  MutexLock lock(mutex_);
  if (floors_.empty()) return 0;
  WallNanos newest = above(prefix);
  for (auto it = floors_.lower_bound(prefix); it != floors_.end() && it->first.starts_with(prefix); ++it) {
    if (it->first.find('/', prefix.size()) == std::string::npos) newest = std::max(newest, it->second);
  }
  return newest;
}

void Floors::satisfied(std::string_view key, WallNanos at) {
  MutexLock lock(mutex_);
  const auto it = floors_.find(key);
  if (it != floors_.end() && it->second < at) floors_.erase(it);
}

void Floors::satisfied_listing(std::string_view prefix, WallNanos at) {
  MutexLock lock(mutex_);
  for (auto it = floors_.lower_bound(prefix); it != floors_.end() && it->first.starts_with(prefix);) {
    const bool direct = it->first != prefix && it->first.find('/', prefix.size()) == std::string::npos;
    it = direct && it->second < at ? floors_.erase(it) : std::next(it);
  }
}

std::size_t Floors::size() const {
  MutexLock lock(mutex_);
  return floors_.size();
}

}  // namespace thermo::catalog
