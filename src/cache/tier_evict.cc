// How objects leave the tier.

#include "cache/tier.h"

namespace thermo::cache {

Result<void> Tier::remove_files(const VersionId& version) {
  // The sidecar first: an object file without one is garbage that the next sweep removes.
  TRY(disk_->remove(sidecar_path(version)));
  return disk_->remove(object_path(version));
}

bool Tier::drop(const VersionId& version) {
  const Claim claim(table_, version);
  FilesPtr closing;  // closed after the lock is gone
  if (claim.entry()) {
    MutexLock lock(claim.entry()->mutex);
    if (claim.entry()->evicting) return true;
    claim.entry()->evicting = true;
    closing = claim.entry()->files;
    claim.entry()->forget();
  }
  const auto record = records_.remove(version);
  const auto removed = remove_files(version);
  if (!record) device_.write_failed(record.error());
  if (!removed) device_.write_failed(removed.error());
  if (claim.entry()) {
    MutexLock lock(claim.entry()->mutex);
    claim.entry()->evicting = false;
  }
  return removed.has_value();
}

std::uint64_t Tier::free(const VersionId& version) {
  // First the files, then the charge: what is on the disk is always paid for.
  const bool gone = drop(version);
  if (!gone) return 0;
  const std::uint64_t freed = space_.remove(version).value_or(0);
  if (freed > 0) metrics_.evicted_bytes.add(freed);
  return freed;
}

void Tier::converge() {
  // Bounded: with everything pinned or the device read-only there is nothing to gain by going on.
  for (int round = 0; round < 1000 && space_.excess() > 0 && device_.may_write(); ++round) {
    const auto victims = space_.take_victims(0);
    if (victims.empty()) return;
    for (const auto& victim : victims) {
      if (drop(victim.id)) {
        metrics_.evictions.add();
        metrics_.evicted_bytes.add(victim.charge);
      } else {
        space_.settle(victim.id, victim.charge, 0);
      }
      space_.evicted(victim.charge);
    }
  }
}

}  // namespace thermo::cache
