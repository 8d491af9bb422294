#include "catalog/flights.h"

#include <algorithm>

namespace thermo::catalog {

FlightPtr Flights::find(FlightKind kind, std::string_view subject, WallNanos need) {
  MutexLock lock(mutex_);
  const auto it = running_.find(id(kind, subject));
  return it == running_.end() || it->second->started < need ? nullptr : it->second;
}

FlightPtr Flights::join(FlightKind kind, const std::string& subject, WallNanos need, WallNanos started, bool& mine) {
  MutexLock lock(mutex_);
  auto& slot = running_[id(kind, subject)];
  mine = slot == nullptr || slot->started < need;
  if (mine) slot = std::make_shared<Flight>(kind, subject, started);
  return slot;
}

void Flights::progress(const FlightPtr& flight) {
  MutexLock lock(mutex_);
  ++flight->stage;
  flight->changed.notify_all();
}

void Flights::finish(const FlightPtr& flight, const Result<void>& outcome, Ending ending) {
  MutexLock lock(mutex_);
  if (flight->done) return;
  ++flight->stage;
  flight->done = true;
  flight->nothing_there = ending.nothing_there;
  flight->partial = ending.partial;
  if (!outcome) flight->error = outcome.error();
  flight->changed.notify_all();
  const auto it = running_.find(id(flight->kind, flight->subject));
  if (it != running_.end() && it->second == flight) running_.erase(it);
}

Flights::State Flights::state(const FlightPtr& flight) const {
  MutexLock lock(mutex_);
  return {flight->stage, flight->done, flight->nothing_there, flight->partial, flight->error};
}

Result<Flights::State> Flights::wait(const RequestContext& ctx, const Clock& clock, const FlightPtr& flight, int stage) {
  MutexLock lock(mutex_);
  while (!flight->done && flight->stage <= stage) {
    TRY(ctx.check(clock));
    // A stop token has no way to wake a waiter, so a waiter that has one looks up now and then.
    const auto look = ctx.stop.stop_possible() ? std::chrono::steady_clock::now() + Millis(50) : MonoTime::max();
    const auto until = std::min(look, ctx.deadline);
    if (until == MonoTime::max()) flight->changed.wait(mutex_);
    else (void)flight->changed.wait_until(mutex_, until);
  }
  return State{flight->stage, flight->done, flight->nothing_there, flight->partial, flight->error};
}

}  // namespace thermo::catalog
