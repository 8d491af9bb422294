#include "front/fuse/op_metrics.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace thermo::fuse {
namespace {

constexpr const char* kOps = "thermocline_fuse_ops_total";
constexpr const char* kOpsHelp = "Requests of the kernel";
constexpr const char* kSeconds = "thermocline_fuse_seconds";
constexpr const char* kSecondsHelp = "From reading a request to its answer";
constexpr const char* kAnswers = "thermocline_fuse_answers_total";
constexpr const char* kAnswersHelp = "Who answered: the thread that read the request, a pool after a wait, or the deadline";

}  // namespace

OpMetrics::OpMetrics(metrics::Registry& registry)
    : unknown_(registry.counter(kOps, kOpsHelp, {{"op", "unknown"}})),
      read_(registry.histogram(kSeconds, kSecondsHelp, {{"op", "read"}})),
      lookup_(registry.histogram(kSeconds, kSecondsHelp, {{"op", "lookup"}})),
      open_(registry.histogram(kSeconds, kSecondsHelp, {{"op", "open"}})),
      inline_(registry.counter(kAnswers, kAnswersHelp, {{"by", "inline"}})),
      pool_(registry.counter(kAnswers, kAnswersHelp, {{"by", "pool"}})),
      deadline_(registry.counter(kAnswers, kAnswersHelp, {{"by", "deadline"}})) {
  for (std::uint32_t opcode = 0; opcode < kOpcodeLimit; ++opcode) {
    std::string name(opcode_name(opcode));
    if (name == "UNKNOWN") continue;
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    ops_[opcode] = &registry.counter(kOps, kOpsHelp, {{"op", name}});
  }
}

void OpMetrics::count(std::uint32_t opcode, Nanos took, AnsweredBy by) {
  metrics::Counter* counter = opcode < kOpcodeLimit ? ops_[opcode] : nullptr;
  (counter != nullptr ? *counter : unknown_).add();
  const double seconds = std::chrono::duration<double>(took).count();
  switch (static_cast<Opcode>(opcode)) {
    case Opcode::kRead: read_.observe_seconds(seconds); break;
    case Opcode::kLookup: lookup_.observe_seconds(seconds); break;
    case Opcode::kOpen: open_.observe_seconds(seconds); break;
    default: break;
  }
  switch (by) {
    case AnsweredBy::kInline: inline_.add(); break;
    case AnsweredBy::kPool: pool_.add(); break;
    case AnsweredBy::kDeadline: deadline_.add(); break;
  }
}

}  // namespace thermo::fuse
