// The parallel listing of a big folder: whatever the names are, the plan asks for each of them exactly once, in few requests, and
// ends.
//
// Input: page size, order of the answers, then names, one a line.

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "catalog/split_plan.h"
#include "fuzz/fuzz.h"

namespace thermo::fuzz {
namespace {

constexpr std::string_view kPrefix = "p/";

void play(const std::set<std::string>& names, std::size_t page, Input order) {
  catalog::SplitPlan plan(std::string(kPrefix), {.parallel = 8, .page = page});
  std::deque<catalog::Stretch> open{plan.start()};
  std::map<std::string, int> seen;
  const std::size_t full = names.size() / page + 1;
  while (!open.empty()) {
    const std::size_t pick = order.byte() % open.size();
    const auto stretch = open[pick];
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(pick));
    auto it = names.upper_bound(stretch.token.empty() ? stretch.after : stretch.token);
    std::vector<std::string_view> entries;
    for (; it != names.end() && entries.size() < page; ++it) entries.emplace_back(*it);
    const auto step = plan.on_page(stretch.id, entries, it != names.end(), entries.empty() ? "" : std::string(entries.back()));
    for (const auto entry : entries) {
      if (entry > step.after && (step.until.empty() || entry <= step.until)) ++seen[std::string(entry)];
    }
    for (const auto& next : step.next) {
      FUZZ_CHECK(next.after >= stretch.after && (next.until.empty() || next.until > next.after));
      open.push_back(next);
    }
    FUZZ_CHECK(plan.requests() <= 16 * full + 16);
  }
  FUZZ_CHECK(plan.done());
  FUZZ_CHECK(seen.size() == names.size());
  for (const auto& [name, times] : seen) FUZZ_CHECK(times == 1);
}

}  // namespace
}  // namespace thermo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thermo;
  fuzz::Input input(fuzz::text_of(data, size));
  const std::size_t page = 2 + input.byte() % 30;
  fuzz::Input order(input.bytes(input.byte()));
  std::set<std::string> names;
  while (!input.empty()) {
    const auto name = input.line();
    // A file, or everything below one folder as one entry.
    if (!name.empty())
      names.insert(std::string(fuzz::kPrefix)
                       .append(name.substr(0, name.find('/') == std::string_view::npos ? name.size() : name.find('/') + 1)));
  }
  if (!names.empty()) fuzz::play(names, page, order);
  return 0;
}
