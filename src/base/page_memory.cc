#include "base/page_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace thermo {
namespace {

constexpr std::size_t kAlignment = 4096;

std::byte* pop(std::vector<std::byte*>& from) {
  std::byte* const page = from.back();
  from.pop_back();
  return page;
}

}  // namespace

PageMemory& PageMemory::instance() {
  static auto* const memory = new PageMemory;
  return *memory;
}

PageMemory::~PageMemory() {
  for (auto* const page : warm_) std::free(page);
  for (auto* const page : cold_) std::free(page);
}

std::byte* PageMemory::take() {
  MutexLock lock(mutex_);
  if (!warm_.empty()) {
    std::byte* const page = pop(warm_);
    least_warm_ = std::min(least_warm_, warm_.size());
    return page;
  }
  if (!cold_.empty()) return pop(cold_);
  auto* const page = static_cast<std::byte*>(std::aligned_alloc(kAlignment, kBytes));
  if (page == nullptr) throw std::bad_alloc();
  return page;
}

void PageMemory::give_back(std::byte* page) {
  MutexLock lock(mutex_);
  warm_.push_back(page);
}

void PageMemory::trim() {
  std::vector<std::byte*> idle;
  {
    MutexLock lock(mutex_);
    const auto end = warm_.begin() + static_cast<std::ptrdiff_t>(least_warm_);
    idle.assign(warm_.begin(), end);  // those that lay there longest
    warm_.erase(warm_.begin(), end);
    least_warm_ = warm_.size();
  }
  to_kernel(std::move(idle));
}

void PageMemory::make_way(std::size_t bytes) {
  std::vector<std::byte*> pages;
  {
    MutexLock lock(mutex_);
    if (warm_.empty()) return;
    for (owed_ += bytes; owed_ >= kBytes && !warm_.empty(); owed_ -= kBytes) pages.push_back(pop(warm_));
    if (warm_.empty()) owed_ = 0;
    least_warm_ = std::min(least_warm_, warm_.size());
  }
  to_kernel(std::move(pages));
}

void PageMemory::to_kernel(std::vector<std::byte*> pages) {
  for (auto* const page : pages) (void)::madvise(page, kBytes, MADV_DONTNEED);
  MutexLock lock(mutex_);
  cold_.insert(cold_.end(), pages.begin(), pages.end());
}

PageMemory::Stock PageMemory::stock() const {
  MutexLock lock(mutex_);
  return {warm_.size(), cold_.size()};
}

}  // namespace thermo
