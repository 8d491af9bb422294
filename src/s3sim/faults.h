#pragma once
// What goes wrong, and when. Grammar of a specification (also in README.md):
//
//   spec  = rule *( "," rule )                     (empty: no faults)
//   rule  = kind "=" probability [ ":" param ] [ "@" op *( "+" op ) ] [ "*" count ]
//
// `probability` is 0..1, `op` a name of Op (GET, HEAD, LIST, PUT, DELETE, PART ...) or ALL, `count` the most times the rule
// fires. Durations are written as "2s" or "500ms".
//
//   kind           param          default ops     effect
//   slowdown       Retry-After    ALL             503 SlowDown
//   error500       -              ALL             500 InternalError
//   error403       -              ALL             403 AccessDenied
//   expired        -              ALL             400 ExpiredToken
//   conflict409    -              writes          409 ConditionalRequestConflict
//   error200       -              COPY+PART_COPY+COMPLETE  200 whose body is an <Error>
//   drop           -              ALL             the connection closes without an answer
//   slowfirst      delay (5s)     ALL             the first byte comes that much later
//   redirect301    region[/host]  ALL             301 PermanentRedirect with x-amz-bucket-region (us-west-2)
//   redirect307    region[/host]  ALL             307 TemporaryRedirect to the same path on host:port (the one that was asked)
//   region400      region         ALL             400 AuthorizationHeaderMalformed with Region
//   stale_list     age (10s)      LIST            the page is that old (memory mode)
//   reset          -              GET+LIST        connection reset in the middle of the body
//   cut            -              GET+LIST        fewer bytes than Content-Length, then the connection closes
//   stall          time (60s)     GET+LIST        nothing is sent for that long in the middle of the body, then the rest
//   flip           -              GET             one bit of the body is wrong
//   etag           -              GET+HEAD        a wrong ETag header
//   checksum       -              GET+HEAD        a wrong x-amz-checksum-* header
//   put_after      -              writes          500 InternalError after the write took effect
//   put_lost       -              writes          the connection closes after the write took effect
//   truncated_list -              LIST            the page lacks its last entry and says IsTruncated=false
//
// A rule sees only requests of its ops; one of the second half only answers on which it can show (a 2xx with a body, an ETag, a
// checksum). Each rule draws from a generator of its own, seeded from (seed, place in the spec): the n-th request that a rule
// sees has the same fate in every run, whatever other requests come between. Of the rules that strike one request the first wins.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/rng.h"
#include "s3sim/request.h"

namespace thermo::s3sim {

enum class FaultKind {
  // Decided before the request is served.
  kSlowDown,
  kError500,
  kError403,
  kExpired,
  kConflict409,
  kError200,
  kDrop,
  kSlowFirst,
  kRedirect301,
  kRedirect307,
  kRegion400,
  kStaleList,
  // Decided when the answer is known.
  kReset,
  kCut,
  kStall,
  kFlip,
  kEtag,
  kChecksum,
  kPutAfter,
  kPutLost,
  kTruncatedList,
};
inline constexpr int kFaultKinds = static_cast<int>(FaultKind::kTruncatedList) + 1;
[[nodiscard]] std::string_view to_string(FaultKind kind);

struct FaultRule {
  FaultKind kind = FaultKind::kSlowDown;
  double probability = 0;
  std::string text;       ///< param as written; empty = none
  Nanos duration{0};      ///< param of the kinds that take a time; their default when none was given
  std::uint32_t ops = 0;  ///< bit per Op
  std::uint64_t count = UINT64_MAX;
};

/// Pure. kInvalidArgument names the rule and what is wrong with it.
[[nodiscard]] Result<std::vector<FaultRule>> parse_faults(std::string_view spec);

/// A fault that strikes one request.
struct Fault {
  FaultKind kind = FaultKind::kSlowDown;
  double position = 0;  ///< in [0, 1): where in the body
  std::string text;
  Nanos duration{0};
};

/// What an answer offers to the faults of the second half.
struct AnswerFacts {
  bool success = false;
  bool has_body = false;
  bool has_etag = false;
  bool has_checksum = false;
};

/// Thread-safe.
class FaultInjector {
 public:
  FaultInjector(std::vector<FaultRule> rules, std::uint64_t seed) { replace(std::move(rules), seed); }
  /// New rules with fresh generators.
  void replace(std::vector<FaultRule> rules, std::uint64_t seed);
  [[nodiscard]] std::optional<Fault> before(Op op);
  [[nodiscard]] std::optional<Fault> after(Op op, const AnswerFacts& facts);

 private:
  struct Armed {
    FaultRule rule;
    Rng rng;
  };
  template <class Sees>
  [[nodiscard]] std::optional<Fault> decide(Op op, Sees sees);

  Mutex mutex_{LockRank::kLeaf, "s3sim faults"};
  std::vector<Armed> rules_ GUARDED_BY(mutex_);
};

}  // namespace thermo::s3sim
