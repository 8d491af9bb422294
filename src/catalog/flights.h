#pragma once
// Questions that are on their way to the store. Who asks the same joins; who waits sees progress and the end.

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/context.h"
#include "base/mutex.h"

namespace thermo::catalog {

/// What a flight is about: 'N' a name, 'L' the children of a folder, 'U' a subtree's first page, 'W' the next page of a walk,
/// 'O' the object that a folder of the same name hides.
enum class FlightKind : char { kName = 'N', kFolder = 'L', kSubtree = 'U', kWalk = 'W', kObject = 'O' };

struct Flight {
  Flight(FlightKind kind_in, std::string subject_in, WallNanos started_in)
      : kind(kind_in), subject(std::move(subject_in)), started(started_in) {}
  const FlightKind kind;
  const std::string subject;
  const WallNanos started;  ///< before its first request

  // Guarded by the mutex of Flights.
  CondVar changed;
  int stage = 0;  ///< goes up when something of it became known
  bool done = false;
  bool nothing_there = false;  ///< done: the store has nothing by that name
  bool partial = false;        ///< done: it gave up at its page limit, or was overtaken: no answer yet
  std::optional<Error> error;
};
using FlightPtr = std::shared_ptr<Flight>;

/// Thread-safe.
class Flights {
 public:
  struct State {
    int stage = 0;
    bool done = false;
    bool nothing_there = false;
    bool partial = false;
    std::optional<Error> error;
  };
  struct Ending {
    bool nothing_there = false;
    bool partial = false;
  };

  /// One that began at `need` or later; else null.
  [[nodiscard]] FlightPtr find(FlightKind kind, std::string_view subject, WallNanos need);
  /// The running one, or a new one that began at `started`; `mine` tells which. One that began before `need` is left to itself.
  [[nodiscard]] FlightPtr join(FlightKind kind, const std::string& subject, WallNanos need, WallNanos started, bool& mine);
  void progress(const FlightPtr& flight);
  void finish(const FlightPtr& flight, const Result<void>& outcome, Ending ending);
  void finish(const FlightPtr& flight, const Result<void>& outcome) { finish(flight, outcome, Ending{}); }
  [[nodiscard]] State state(const FlightPtr& flight) const;
  /// Until it is done or past `stage`; kTimeout, kCancelled by the caller's own context.
  [[nodiscard]] Result<State> wait(const RequestContext& ctx, const Clock& clock, const FlightPtr& flight, int stage);

 private:
  [[nodiscard]] static std::string id(FlightKind kind, std::string_view subject) {
    return static_cast<char>(kind) + std::string(subject);
  }
  mutable Mutex mutex_{LockRank::kCatalogFlight, "catalog flights"};
  std::unordered_map<std::string, FlightPtr> running_ GUARDED_BY(mutex_);
};

}  // namespace thermo::catalog
