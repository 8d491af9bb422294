#include "s3sim/faults.h"

#include <fmt/core.h>

#include <charconv>

#include "base/units.h"

namespace thermo::s3sim {
namespace {

constexpr std::uint32_t bit(Op op) { return 1U << static_cast<unsigned>(op); }
constexpr std::uint32_t kAllOps = (1U << kOps) - 1;
constexpr std::uint32_t kWrites = bit(Op::kPut) | bit(Op::kCopy) | bit(Op::kPart) | bit(Op::kPartCopy) | bit(Op::kComplete);

enum class Param { kNone, kOptionalTime, kTime, kText };

struct KindInfo {
  std::string_view name;
  Param param;
  std::uint32_t ops;
  Nanos default_time;
};

using std::chrono::seconds;
constexpr std::array<KindInfo, kFaultKinds> kKinds{{
    {"slowdown", Param::kOptionalTime, kAllOps, Nanos(0)},
    {"error500", Param::kNone, kAllOps, Nanos(0)},
    {"error403", Param::kNone, kAllOps, Nanos(0)},
    {"expired", Param::kNone, kAllOps, Nanos(0)},
    {"conflict409", Param::kNone, kWrites, Nanos(0)},
    {"error200", Param::kNone, bit(Op::kCopy) | bit(Op::kPartCopy) | bit(Op::kComplete), Nanos(0)},
    {"drop", Param::kNone, kAllOps, Nanos(0)},
    {"slowfirst", Param::kTime, kAllOps, seconds(5)},
    {"redirect301", Param::kText, kAllOps, Nanos(0)},
    {"redirect307", Param::kText, kAllOps, Nanos(0)},
    {"region400", Param::kText, kAllOps, Nanos(0)},
    {"stale_list", Param::kTime, bit(Op::kList), seconds(10)},
    {"reset", Param::kNone, bit(Op::kGet) | bit(Op::kList), Nanos(0)},
    {"cut", Param::kNone, bit(Op::kGet) | bit(Op::kList), Nanos(0)},
    {"stall", Param::kTime, bit(Op::kGet) | bit(Op::kList), seconds(60)},
    {"flip", Param::kNone, bit(Op::kGet), Nanos(0)},
    {"etag", Param::kNone, bit(Op::kGet) | bit(Op::kHead), Nanos(0)},
    {"checksum", Param::kNone, bit(Op::kGet) | bit(Op::kHead), Nanos(0)},
    {"put_after", Param::kNone, kWrites, Nanos(0)},
    {"put_lost", Param::kNone, kWrites, Nanos(0)},
    {"truncated_list", Param::kNone, bit(Op::kList), Nanos(0)},
}};

const KindInfo& info(FaultKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

tl::unexpected<Error> bad(std::string_view rule, std::string_view why) {
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("fault '{}': {}; write kind=probability[:param][@OP+OP][*count], such as slowdown=0.1:2s@GET+LIST*20",
                          rule, why));
}

template <class Number>
bool parse_whole(std::string_view text, Number& value) {
  const auto [ptr, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  return ec == std::errc() && ptr == text.data() + text.size();
}

std::optional<std::uint32_t> parse_ops(std::string_view text) {
  std::uint32_t ops = 0;
  while (true) {
    const std::size_t plus = text.find('+');
    const std::string_view name = text.substr(0, plus);
    std::uint32_t found = name == "ALL" ? kAllOps : 0;
    for (int i = 0; i < kOps; ++i) {
      if (name == to_string(static_cast<Op>(i))) found = 1U << static_cast<unsigned>(i);
    }
    if (found == 0) return std::nullopt;
    ops |= found;
    if (plus == std::string_view::npos) return ops;
    text.remove_prefix(plus + 1);
  }
}

Result<FaultRule> parse_rule(std::string_view whole) {
  FaultRule rule;
  std::string_view text = whole;
  if (const std::size_t star = text.rfind('*'); star != std::string_view::npos) {
    if (!parse_whole(text.substr(star + 1), rule.count)) return bad(whole, "the count after '*' is not a number");
    text = text.substr(0, star);
  }
  std::optional<std::uint32_t> ops;
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    ops = parse_ops(text.substr(at + 1));
    if (!ops)
      return bad(whole,
                 fmt::format("'{}' are not operations (GET, HEAD, LIST, PUT, DELETE, PART ... or ALL)", text.substr(at + 1)));
    text = text.substr(0, at);
  }
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return bad(whole, "the probability is missing");
  const std::string_view name = text.substr(0, equals);
  const KindInfo* kind = nullptr;
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds[i].name != name) continue;
    kind = &kKinds[i];
    rule.kind = static_cast<FaultKind>(i);
  }
  if (!kind) return bad(whole, fmt::format("there is no kind '{}'", name));
  std::string_view probability = text.substr(equals + 1);
  if (const std::size_t colon = probability.find(':'); colon != std::string_view::npos) {
    rule.text = std::string(probability.substr(colon + 1));
    probability = probability.substr(0, colon);
  }
  if (!parse_whole(probability, rule.probability) || !(rule.probability >= 0 && rule.probability <= 1))
    return bad(whole, "the probability is not a number from 0 to 1");
  rule.ops = ops.value_or(kind->ops);
  rule.duration = kind->default_time;
  if (!rule.text.empty() && kind->param == Param::kNone) return bad(whole, fmt::format("'{}' takes no parameter", name));
  if (!rule.text.empty() && (kind->param == Param::kTime || kind->param == Param::kOptionalTime)) {
    auto duration = parse_duration(rule.text);
    if (!duration) return bad(whole, duration.error().message());
    rule.duration = *duration;
  }
  return rule;
}

}  // namespace

std::string_view to_string(FaultKind kind) { return info(kind).name; }

Result<std::vector<FaultRule>> parse_faults(std::string_view spec) {
  std::vector<FaultRule> rules;
  while (!spec.empty()) {
    const std::size_t comma = spec.find(',');
    std::string_view one = spec.substr(0, comma);
    spec = comma == std::string_view::npos ? std::string_view() : spec.substr(comma + 1);
    while (!one.empty() && (one.front() == ' ' || one.front() == '\n')) one.remove_prefix(1);
    while (!one.empty() && (one.back() == ' ' || one.back() == '\n')) one.remove_suffix(1);
    if (one.empty()) continue;
    TRY_ASSIGN(FaultRule rule, parse_rule(one));
    rules.push_back(std::move(rule));
  }
  return rules;
}

void FaultInjector::replace(std::vector<FaultRule> rules, std::uint64_t seed) {
  std::vector<Armed> armed;
  Rng seeds(seed);
  for (auto& rule : rules) armed.push_back({std::move(rule), Rng(seeds.next())});
  MutexLock lock(mutex_);
  rules_ = std::move(armed);
}

template <class Sees>
std::optional<Fault> FaultInjector::decide(Op op, Sees sees) {
  std::optional<Fault> struck;
  MutexLock lock(mutex_);
  for (auto& [rule, rng] : rules_) {
    if ((rule.ops & bit(op)) == 0 || !sees(rule.kind)) continue;
    // Both numbers are drawn whatever happens: a rule's stream depends on nothing but how many requests it saw.
    const bool strikes = rng.chance(rule.probability);
    const double position = rng.unit();
    if (!strikes || struck || rule.count == 0) continue;
    --rule.count;
    struck = Fault{rule.kind, position, rule.text, rule.duration};
  }
  return struck;
}

std::optional<Fault> FaultInjector::before(Op op) {
  return decide(op, [](FaultKind kind) { return kind <= FaultKind::kStaleList; });
}

std::optional<Fault> FaultInjector::after(Op op, const AnswerFacts& facts) {
  if (!facts.success) return std::nullopt;
  return decide(op, [&](FaultKind kind) {
    switch (kind) {
      case FaultKind::kReset:
      case FaultKind::kCut:
      case FaultKind::kStall:
      case FaultKind::kFlip:
      case FaultKind::kTruncatedList: return facts.has_body;
      case FaultKind::kEtag: return facts.has_etag;
      case FaultKind::kChecksum: return facts.has_checksum;
      case FaultKind::kPutAfter:
      case FaultKind::kPutLost: return true;
      default: return false;
    }
  });
}

}  // namespace thermo::s3sim
