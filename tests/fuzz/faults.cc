// The fault grammar of s3sim: what was understood, written down again in full, means the same; an injector made of it obeys its
// counts.

#include <fmt/format.h>

#include "fuzz/fuzz.h"
#include "s3sim/faults.h"

namespace thermo::fuzz {
namespace {

std::string written(const std::vector<s3sim::FaultRule>& rules) {
  std::string out;
  for (const auto& rule : rules) {
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", s3sim::to_string(rule.kind), rule.probability);
    if (!rule.text.empty()) out += ':' + rule.text;
    char separator = '@';
    for (int op = 0; op < s3sim::kOps; ++op) {
      if ((rule.ops >> static_cast<unsigned>(op) & 1U) == 0) continue;
      out += separator;
      out += s3sim::to_string(static_cast<s3sim::Op>(op));
      separator = '+';
    }
    out += fmt::format("*{}", rule.count);
  }
  return out;
}

bool same(const s3sim::FaultRule& a, const s3sim::FaultRule& b) {
  return a.kind == b.kind && a.probability == b.probability && a.text == b.text && a.duration == b.duration && a.ops == b.ops &&
         a.count == b.count;
}

}  // namespace
}  // namespace thermo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thermo;
  const auto spec = fuzz::text_of(data, size);
  const auto rules = s3sim::parse_faults(spec);
  if (!rules) {
    FUZZ_CHECK(rules.error().code() == ErrorCode::kInvalidArgument && rules.error().message().starts_with("fault '"));
    return 0;
  }
  const auto again = s3sim::parse_faults(fuzz::written(*rules));
  FUZZ_CHECK(again && std::equal(rules->begin(), rules->end(), again->begin(), again->end(), fuzz::same));
  for (const auto& rule : *rules) FUZZ_CHECK(rule.probability >= 0 && rule.probability <= 1 && rule.ops != 0);

  s3sim::FaultInjector first(*rules, size);
  s3sim::FaultInjector second(*again, size);
  std::uint64_t most = 0;
  for (const auto& rule : *rules) most += std::min<std::uint64_t>(rule.count, 1000);
  std::uint64_t struck = 0;
  for (int i = 0; i < 60; ++i) {
    const auto op = static_cast<s3sim::Op>(i % s3sim::kOps);
    const auto before = first.before(op);
    const auto same_before = second.before(op);
    const auto after = first.after(op, {true, true, true, true});
    const auto same_after = second.after(op, {true, true, true, true});
    FUZZ_CHECK(before.has_value() == same_before.has_value() && after.has_value() == same_after.has_value());
    if (before) FUZZ_CHECK(before->kind == same_before->kind && before->position >= 0 && before->position < 1);
    struck += static_cast<std::uint64_t>(before.has_value()) + static_cast<std::uint64_t>(after.has_value());
  }
  FUZZ_CHECK(struck <= most);
  return 0;
}
