#pragma once
// The cache's counters, found once.

#include "base/metrics.h"

namespace thermo::cache {

struct CacheMetrics {
  explicit CacheMetrics(metrics::Registry& r)
      : served_warm(
            r.counter("thermocline_bytes_served_total", "Bytes given to readers, by where they came from.", {{"tier", "warm"}})),
        served_store(
            r.counter("thermocline_bytes_served_total", "Bytes given to readers, by where they came from.", {{"tier", "store"}})),
        fill_bytes(r.counter("thermocline_cache_fill_bytes_total", "Bytes fetched from the source.")),
        fills(r.counter("thermocline_cache_fills_total", "Requests made to the source.")),
        fill_errors(r.counter("thermocline_cache_fill_errors_total", "Requests to the source that failed.")),
        evictions(r.counter("thermocline_cache_evictions_total", "Objects evicted.")),
        evicted_bytes(r.counter("thermocline_cache_evicted_bytes_total", "Bytes freed by eviction.")),
        corrupt_blocks(r.counter("thermocline_cache_corrupt_blocks_total",
                                 "Cached blocks that could not be read or failed their checksum.")),
        healed_blocks(r.counter("thermocline_cache_healed_blocks_total", "Corrupt blocks replaced from the source.")),
        dropped_objects(
            r.counter("thermocline_cache_dropped_objects_total", "Objects dropped because their files were damaged or gone.")),
        bypass_pages(r.counter("thermocline_cache_bypass_pages_total", "Pages that were served without being cached.")),
        fills_running(r.gauge("thermocline_cache_fills_running", "Requests to the source under way.")),
        pending_writes(
            r.gauge("thermocline_cache_pending_writes", "Pages, and ends of requests, that wait to be written to the tier.")),
        used(r.gauge("thermocline_cache_used_bytes", "Bytes charged to the tier, reservations included.")),
        limit(r.gauge("thermocline_cache_limit_bytes", "Byte limit of the tier.")) {}

  metrics::Counter& served_warm;
  metrics::Counter& served_store;
  metrics::Counter& fill_bytes;
  metrics::Counter& fills;
  metrics::Counter& fill_errors;
  metrics::Counter& evictions;
  metrics::Counter& evicted_bytes;
  metrics::Counter& corrupt_blocks;
  metrics::Counter& healed_blocks;
  metrics::Counter& dropped_objects;
  metrics::Counter& bypass_pages;
  metrics::Gauge& fills_running;
  metrics::Gauge& pending_writes;
  metrics::Gauge& used;
  metrics::Gauge& limit;
};

}  // namespace thermo::cache
