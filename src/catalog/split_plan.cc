#include "catalog/split_plan.h"

#include <algorithm>
#include <cmath>

namespace thermo::catalog {
namespace {

constexpr std::size_t kSamplesPerPage = 16;
constexpr std::size_t kMostSamples = 1024;
// A little less than a page, so that chance does not push a stretch just over its page.
constexpr double kFill = 0.95;

}  // namespace

Stretch& SplitPlan::open(std::string after, std::string until, std::string token) {
  const auto id = next_id_++;
  ++requests_;
  return open_.emplace(id, Stretch{id, std::move(after), std::move(until), std::move(token)}).first->second;
}

Stretch SplitPlan::start() { return open({}, {}, {}); }

std::string_view SplitPlan::name_of(std::string_view entry) const {
  entry.remove_prefix(prefix_.size());
  if (!entry.empty() && entry.back() == '/') entry.remove_suffix(1);
  return entry;
}

void SplitPlan::sample(const std::vector<std::string_view>& entries) {
  for (std::size_t i = 0; i < kSamplesPerPage; ++i) {
    samples_.emplace_back(name_of(entries[i * (entries.size() - 1) / (kSamplesPerPage - 1)]));
  }
  std::sort(samples_.begin(), samples_.end());
  samples_.erase(std::unique(samples_.begin(), samples_.end()), samples_.end());
  if (samples_.size() <= kMostSamples) return;
  for (std::size_t i = 0; i < samples_.size() / 2; ++i) samples_[i] = std::move(samples_[2 * i]);
  samples_.resize(samples_.size() / 2);
}

SplitPlan::Step SplitPlan::on_page(std::uint64_t id, const std::vector<std::string_view>& entries, bool truncated,
                                   const std::string& token) {
  const auto node = open_.extract(id);
  Stretch stretch = node.mapped();
  Step step{stretch.after, stretch.until, {}};
  if (entries.empty()) return step;
  if (stretch.until.empty() || entries.front() <= stretch.until) ++pages_;
  const std::string last(entries.back());
  if (!truncated || (!stretch.until.empty() && last >= stretch.until)) return step;

  step.until = last;
  sample(entries);
  std::string from = last;
  std::string resume = token;
  for (auto& cut : cuts(entries, stretch.until)) {
    step.next.push_back(open(std::move(from), cut, std::move(resume)));
    from = std::move(cut);
    resume.clear();
  }
  step.next.push_back(open(std::move(from), stretch.until, std::move(resume)));
  return step;
}

std::vector<std::string> SplitPlan::cuts(const std::vector<std::string_view>& entries, const std::string& until) const {
  if (entries.size() < 2) return {};
  const KeyScale scale(samples_);
  const std::uint64_t first = scale.value(name_of(entries.front()));
  const std::uint64_t last = scale.value(name_of(entries.back()));
  if (last <= first) return {};
  const double width =
      static_cast<double>(last - first) * static_cast<double>(options_.page) / static_cast<double>(entries.size() - 1) * kFill;
  const std::uint64_t end = until.empty() ? scale.limit() : scale.value(name_of(until));
  if (end <= last) return {};
  const double rest = static_cast<double>(end - last);

  std::size_t count = 0;
  double step = width;
  if (until.empty()) {
    count = std::min({std::max<std::size_t>(2, pages_ / 2), options_.parallel - 1, static_cast<std::size_t>(rest / width)});
  } else {
    // Between stretches that hold names: cut evenly.
    const double pieces = std::min(std::ceil(rest / width - 0.3), static_cast<double>(options_.parallel));
    if (pieces >= 2) count = static_cast<std::size_t>(pieces) - 1;
    step = rest / std::max(pieces, 1.0);
  }
  std::vector<std::string> cuts;
  std::string previous(entries.back());
  for (std::size_t i = 1; i <= count; ++i) {
    const double offset = step * static_cast<double>(i);
    if (offset < 1 || offset >= rest) break;
    const std::string name = scale.name(last + static_cast<std::uint64_t>(offset));
    std::string cut = prefix_ + name;
    // A cut inside of the last group would list that group twice.
    if (name.empty() || cut <= previous || (previous.back() == '/' && cut.starts_with(previous))) continue;
    if (!until.empty() && cut >= until) break;
    previous = cut;
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

}  // namespace thermo::catalog
