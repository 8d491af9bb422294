// How objects leave the tier.

#include "cache/tier.h"

namespace thermo::cache {

Result<void> Tier::remove_files(const VersionId& version) {
  // The sidecar first: an object file without one is garbage that the next sweep removes.
  TRY(disk_->remove(sidecar_path(version)));
  return disk_->remove(object_path(version));
}

Result<std::uint64_t> Tier::drop(const VersionId& version) {
  const Claim claim(table_, version);
  FilesPtr closing;  // closed after the lock is gone
  if (claim.entry()) {
    Entry& entry = *claim.entry();
    MutexLock lock(entry.mutex);
    while (entry.evicting) entry.changed.wait(entry.mutex);
    entry.evicting = true;
    closing = entry.files;
    entry.forget();
  }
  const auto record = records_.remove(version);
  auto removed = remove_files(version);
  if (!record) device_.write_failed(record.error());
  if (!removed) device_.write_failed(removed.error());
  // What is on the disk is paid for, so the files go first. And before anybody may fill it anew, or the new charge would go too.
  const std::uint64_t freed = removed ? space_.remove(version).value_or(0) : 0;
  if (claim.entry()) {
    Entry& entry = *claim.entry();
    MutexLock lock(entry.mutex);
    entry.evicting = false;
    entry.changed.notify_all();
  }
  if (!removed) return fail(std::move(removed).error());
  return freed;
}

void Tier::evict(const std::vector<Space::Victim>& victims) {
  for (const auto& victim : victims) {
    if (drop(victim.id)) {
      metrics_.evictions.add();
      metrics_.evicted_bytes.add(victim.charge);
    } else {
      space_.settle(victim.id, victim.charge, 0);  // still there, still paid for
    }
    space_.evicted(victim.charge);
  }
}

Result<std::uint64_t> Tier::free(const VersionId& version) {
  TRY_ASSIGN(const std::uint64_t freed, drop(version));
  if (freed > 0) metrics_.evicted_bytes.add(freed);
  return freed;
}

void Tier::converge() {
  // Bounded: with everything pinned or the device read-only there is nothing to gain by going on.
  for (int round = 0; round < 1000 && space_.excess() > 0 && device_.may_write(); ++round) {
    const auto victims = space_.take_victims(0, Space::Enough::kOrLess);
    if (victims.empty()) return;
    evict(victims);
  }
}

}  // namespace thermo::cache
