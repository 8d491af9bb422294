#include "s3sim/backend.h"

#include "s3sim/conditional.h"

namespace thermo::s3sim {

S3Result<void> check_condition(const WriteCondition& condition, const ObjectPtr& current, std::string_view key) {
  const auto failed = [](const char* which) {
    S3Error error{412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold"};
    error.fields.emplace_back("Condition", which);
    return tl::unexpected<S3Error>(std::move(error));
  };
  if (condition.if_absent && current) return failed("If-None-Match");
  if (condition.if_match.empty()) return {};
  if (!current) return tl::unexpected<S3Error>(no_such_key(key));
  if (!etag_matches(condition.if_match, current->etag)) return failed("If-Match");
  return {};
}

}  // namespace thermo::s3sim
