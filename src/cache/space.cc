#include "cache/space.h"

#include <algorithm>

namespace thermo::cache {

Space::Space(std::uint64_t limit_bytes, metrics::Gauge& used, metrics::Gauge& limit)
    : replacement_(make_fifo()), limit_(limit_bytes), used_gauge_(used), limit_gauge_(limit) {
  limit_gauge_.set(static_cast<std::int64_t>(limit_bytes));
}

void Space::publish() { used_gauge_.set(static_cast<std::int64_t>(charged_ + leaving_ + reserved_)); }

bool Space::reserve(std::uint64_t bytes) {
  MutexLock lock(mutex_);
  if (charged_ + leaving_ + reserved_ + bytes > limit_) return false;
  reserved_ += bytes;
  publish();
  return true;
}

void Space::release(std::uint64_t bytes) {
  MutexLock lock(mutex_);
  reserved_ -= std::min(bytes, reserved_);
  publish();
}

std::vector<Space::Victim> Space::take_victims(std::uint64_t bytes, Enough enough) {
  MutexLock lock(mutex_);
  const std::uint64_t wanted = charged_ + reserved_ + bytes;
  if (wanted <= limit_) return {};
  const std::uint64_t missing = wanted - limit_;
  const auto ids = replacement_->victims(missing, [&](const VersionId& id) REQUIRES(mutex_) { return pins_.contains(id); });
  std::vector<Victim> victims;
  std::uint64_t sum = 0;
  for (const auto& id : ids) {
    const std::uint64_t charge = replacement_->find(id)->bytes;
    victims.push_back({id, charge});
    sum += charge;
  }
  if (sum < missing && enough == Enough::kOrNone) return {};
  for (const auto& victim : victims) replacement_->on_remove(victim.id);
  charged_ -= sum;
  leaving_ += sum;
  return victims;
}

void Space::evicted(std::uint64_t charge) {
  MutexLock lock(mutex_);
  leaving_ -= std::min(charge, leaving_);
  publish();
  evicted_.notify_all();
}

bool Space::wait_for_eviction() {
  MutexLock lock(mutex_);
  if (leaving_ == 0) return false;
  // Bounded in real time: it only paces a loop, no promise depends on it.
  (void)evicted_.wait_until(mutex_, Clock::system().now() + Millis(50));
  return true;
}

void Space::settle(const VersionId& id, std::uint64_t charge, std::uint64_t reserved) {
  MutexLock lock(mutex_);
  reserved_ -= std::min(reserved, reserved_);
  const auto old = replacement_->find(id);
  if (old) {
    charged_ -= old->bytes;
    replacement_->on_resize(id, charge);
  } else {
    replacement_->on_insert(id, charge, next_order_++);
  }
  charged_ += charge;
  publish();
}

void Space::restore(const VersionId& id, std::uint64_t charge, std::uint64_t order) {
  MutexLock lock(mutex_);
  next_order_ = std::max(next_order_, order + 1);
  const auto old = replacement_->find(id);
  if (old) charged_ -= old->bytes;
  replacement_->on_insert(id, charge, order);
  charged_ += charge;
  publish();
}

std::optional<std::uint64_t> Space::remove(const VersionId& id) {
  MutexLock lock(mutex_);
  const auto old = replacement_->find(id);
  if (!old) return std::nullopt;
  replacement_->on_remove(id);
  charged_ -= old->bytes;
  publish();
  return old->bytes;
}

void Space::hit(const VersionId& id) {
  MutexLock lock(mutex_);
  replacement_->on_hit(id);
}

void Space::pin(const VersionId& id) {
  MutexLock lock(mutex_);
  ++pins_[id];
}

void Space::unpin(const VersionId& id) {
  MutexLock lock(mutex_);
  const auto it = pins_.find(id);
  if (it != pins_.end() && --it->second == 0) pins_.erase(it);
}

std::optional<Replacement::Item> Space::find(const VersionId& id) const {
  MutexLock lock(mutex_);
  return replacement_->find(id);
}

std::vector<VersionId> Space::all() const {
  MutexLock lock(mutex_);
  return replacement_->all();
}

void Space::set_limit(std::uint64_t bytes) {
  MutexLock lock(mutex_);
  limit_ = bytes;
  limit_gauge_.set(static_cast<std::int64_t>(bytes));
}

std::uint64_t Space::limit() const {
  MutexLock lock(mutex_);
  return limit_;
}

std::uint64_t Space::used() const {
  MutexLock lock(mutex_);
  return charged_ + leaving_ + reserved_;
}

std::size_t Space::objects() const {
  MutexLock lock(mutex_);
  return replacement_->count();
}

std::uint64_t Space::excess() const {
  MutexLock lock(mutex_);
  const std::uint64_t used = charged_ + leaving_ + reserved_;
  return used > limit_ + leaving_ ? used - leaving_ - limit_ : 0;
}

}  // namespace thermo::cache
