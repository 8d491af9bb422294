#pragma once
// Counters, gauges and histograms with a Prometheus text page. A family is named once; a child (one set of labels) is found once
// by its component and kept: adding is one relaxed atomic.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace thermo::metrics {

using Labels = std::map<std::string, std::string>;

/// Only grows. Thread-safe.
class Counter {
 public:
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Goes up and down. Thread-safe.
class Gauge {
 public:
  void add(std::int64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
  void set(std::int64_t n) { value_.store(n, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

/// Durations in seconds with fixed exponential buckets: 1 us, 2, 5, 10 ... 10 s, +Inf. Thread-safe.
class Histogram {
 public:
  static constexpr std::size_t kBuckets = 22;
  void observe_seconds(double seconds);
  [[nodiscard]] std::uint64_t count() const;
  /// Upper bound of the bucket that holds the given quantile (0..1); 0 when empty.
  [[nodiscard]] double quantile(double q) const;
  [[nodiscard]] static double bound(std::size_t bucket);
  [[nodiscard]] std::uint64_t bucket(std::size_t index) const { return buckets_[index].load(std::memory_order_relaxed); }
  [[nodiscard]] double sum_seconds() const;

 private:
  std::atomic<std::uint64_t> buckets_[kBuckets]{};
  std::atomic<std::uint64_t> sum_ns_{0};
};

/// Holds all families of a process (or of a test). Thread-safe. References stay valid while the registry lives.
class Registry {
 public:
  Registry();
  ~Registry();
  /// `name` follows Prometheus rules, e.g. "thermocline_bytes_served_total". The same name and labels give the same object.
  [[nodiscard]] Counter& counter(std::string_view name, std::string_view help, const Labels& labels = {});
  [[nodiscard]] Gauge& gauge(std::string_view name, std::string_view help, const Labels& labels = {});
  [[nodiscard]] Histogram& histogram(std::string_view name, std::string_view help, const Labels& labels = {});
  /// The Prometheus text exposition format, families in name order.
  [[nodiscard]] std::string text() const;
  /// All counters and gauges as "name{label=value}" -> value, for `thermo status --json` and tests.
  [[nodiscard]] std::map<std::string, std::int64_t> snapshot() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace thermo::metrics
