#include "base/metrics.h"

#include <fmt/core.h>

#include "base/mutex.h"

// The text format is a page of code; prometheus-cpp would cost a double CAS per add and its registry header 1.1 s per file.

namespace thermo::metrics {
namespace {

constexpr double kBounds[Histogram::kBuckets] = {1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3,
                                                 5e-3, 1e-2, 2e-2, 5e-2, 0.1,  0.2,  0.5,  1,    2,    10,   1e300};

// Help texts keep their quotes, label values do not.
std::string escape(std::string_view text, bool label) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') out += "\\\\";
    else if (c == '"' && label) out += "\\\"";
    else if (c == '\n') out += "\\n";
    else out += c;
  }
  return out;
}

std::string label_text(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    if (!text.empty()) text += ',';
    text += name + "=\"" + escape(value, true) + '"';
  }
  return text;
}

std::string with_labels(std::string_view name, const std::string& labels) {
  return labels.empty() ? std::string(name) : fmt::format("{}{{{}}}", name, labels);
}

}  // namespace

void Histogram::observe_seconds(double seconds) {
  if (!(seconds >= 0)) seconds = 0;  // a clock that jumped back, or not a number
  std::size_t i = 0;
  while (i + 1 < kBuckets && seconds > kBounds[i]) ++i;
  buckets_[i].fetch_add(1, std::memory_order_relaxed);
  sum_ns_.fetch_add(static_cast<std::uint64_t>(seconds * 1e9), std::memory_order_relaxed);
}

std::uint64_t Histogram::count() const {
  std::uint64_t n = 0;
  for (const auto& b : buckets_) n += b.load(std::memory_order_relaxed);
  return n;
}

double Histogram::quantile(double q) const {
  const double wanted = q * static_cast<double>(count());
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += bucket(i);
    if (seen > 0 && static_cast<double>(seen) >= wanted) return kBounds[i];
  }
  return 0;
}

double Histogram::bound(std::size_t bucket) { return kBounds[bucket]; }
double Histogram::sum_seconds() const { return static_cast<double>(sum_ns_.load(std::memory_order_relaxed)) * 1e-9; }

struct Registry::Impl {
  template <class T>
  struct Family {
    std::string help;
    std::map<std::string, std::unique_ptr<T>> children;  // by label text
  };
  template <class T>
  using Families = std::map<std::string, Family<T>, std::less<>>;

  mutable Mutex mutex{LockRank::kLeaf, "metrics registry"};
  Families<Counter> counters GUARDED_BY(mutex);
  Families<Gauge> gauges GUARDED_BY(mutex);
  Families<Histogram> histograms GUARDED_BY(mutex);

  template <class T>
  static T& child(Families<T>& families, std::string_view name, std::string_view help, const Labels& labels) {
    auto it = families.find(name);
    if (it == families.end()) it = families.emplace(std::string(name), Family<T>{std::string(help), {}}).first;
    auto& slot = it->second.children[label_text(labels)];
    if (!slot) slot = std::make_unique<T>();
    return *slot;
  }

  template <class T>
  static void append_values(std::string& out, const Families<T>& families, const char* type) {
    for (const auto& [name, family] : families) {
      out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escape(family.help, false), name, type);
      for (const auto& [labels, value] : family.children)
        out += fmt::format("{} {}\n", with_labels(name, labels), value->value());
    }
  }
};

Registry::Registry() : impl_(std::make_unique<Impl>()) {}
Registry::~Registry() = default;

Counter& Registry::counter(std::string_view name, std::string_view help, const Labels& labels) {
  MutexLock lock(impl_->mutex);
  return Impl::child(impl_->counters, name, help, labels);
}
Gauge& Registry::gauge(std::string_view name, std::string_view help, const Labels& labels) {
  MutexLock lock(impl_->mutex);
  return Impl::child(impl_->gauges, name, help, labels);
}
Histogram& Registry::histogram(std::string_view name, std::string_view help, const Labels& labels) {
  MutexLock lock(impl_->mutex);
  return Impl::child(impl_->histograms, name, help, labels);
}

std::string Registry::text() const {
  std::string out;
  MutexLock lock(impl_->mutex);
  Impl::append_values(out, impl_->counters, "counter");
  Impl::append_values(out, impl_->gauges, "gauge");
  for (const auto& [name, family] : impl_->histograms) {
    out += fmt::format("# HELP {} {}\n# TYPE {} histogram\n", name, escape(family.help, false), name);
    for (const auto& [labels, histogram] : family.children) {
      const std::string comma = labels.empty() ? "" : ",";
      std::uint64_t total = 0;
      for (std::size_t i = 0; i < Histogram::kBuckets; ++i) {
        total += histogram->bucket(i);
        const std::string le = i + 1 == Histogram::kBuckets ? "+Inf" : fmt::format("{}", Histogram::bound(i));
        out += fmt::format("{}_bucket{{{}{}le=\"{}\"}} {}\n", name, labels, comma, le, total);
      }
      out += fmt::format("{} {}\n", with_labels(name + "_sum", labels), histogram->sum_seconds());
      out += fmt::format("{} {}\n", with_labels(name + "_count", labels), total);
    }
  }
  return out;
}

std::map<std::string, std::int64_t> Registry::snapshot() const {
  std::map<std::string, std::int64_t> values;
  MutexLock lock(impl_->mutex);
  for (const auto& [name, family] : impl_->counters) {
    for (const auto& [labels, c] : family.children) values[with_labels(name, labels)] = static_cast<std::int64_t>(c->value());
  }
  for (const auto& [name, family] : impl_->gauges) {
    for (const auto& [labels, g] : family.children) values[with_labels(name, labels)] = g->value();
  }
  return values;
}

}  // namespace thermo::metrics
