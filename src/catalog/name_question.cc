// Engine::ask_name: a NameProbe driven by LISTs.

#include <utility>

#include "catalog/engine.h"

namespace thermo::catalog {

class Engine::NameQuestion : public std::enable_shared_from_this<Engine::NameQuestion> {
 public:
  NameQuestion(std::shared_ptr<Engine> engine, Question question, FlightPtr flight, FlightPtr subtree, NameProbe::Prior prior)
      : engine_(std::move(engine)),
        question_(std::move(question)),
        flight_(std::move(flight)),
        subtree_(std::move(subtree)),
        probe_(flight_->subject, prior) {}

  void start() {
    std::vector<Ask> asks;
    {
      MutexLock lock(mutex_);
      asks = probe_.start();
    }
    send(asks);
  }

 private:
  void send(const std::vector<Ask>& asks) {
    for (const Ask ask : asks) {
      store::ListRequest request;
      {
        MutexLock lock(mutex_);
        request = probe_.request(ask);
      }
      engine_->list(question_, std::move(request), engine_->shared_.name_lists,
                    [self = shared_from_this(), ask](const Result<store::ListPage>& page) { self->answer(ask, page); });
    }
  }

  void answer(Ask ask, const Result<store::ListPage>& page) {
    // The subtree first: it may make the name's own answer, and all below, known in one write.
    if (ask == Ask::kSubtree) engine_->subtree_page(question_, subtree_, page);
    std::vector<Ask> asks;
    bool decided = false;
    bool failed = false;
    Applier::NameFacts facts;
    std::optional<Error> error;
    {
      MutexLock lock(mutex_);
      asks = probe_.on_answer(ask, page);
      decided = probe_.decided() && !std::exchange(over_, probe_.decided());
      if (!decided && !over_ && probe_.failed()) failed = over_ = true;
      facts = probe_.facts(flight_->started);
      error = probe_.error();
    }
    if (decided) {
      auto applied = engine_->applier_.name(question_.ctx, flight_->subject, facts);
      if (applied) engine_->notify(applied->notices);
      const bool nothing = applied && applied->nothing_there;
      engine_->flights_.finish(flight_, applied ? Result<void>() : fail(applied.error()),
                               {.nothing_there = nothing, .partial = applied && applied->overtaken});
    } else if (failed) {
      const Error unknown(ErrorCode::kInternal, "nothing was asked about '" + flight_->subject + "'");
      engine_->flights_.finish(flight_, fail(error ? error->within("look up '" + flight_->subject + "'") : unknown));
    }
    send(asks);
  }

  const std::shared_ptr<Engine> engine_;
  const Question question_;
  const FlightPtr flight_;
  const FlightPtr subtree_;
  Mutex mutex_{LockRank::kCatalog, "catalog name question"};
  NameProbe probe_ GUARDED_BY(mutex_);
  bool over_ GUARDED_BY(mutex_) = false;
};

FlightPtr Engine::ask_name(const RequestContext& ctx, const store::ObjectStorePtr& store, const std::string& path,
                           NameProbe::Prior prior, WallNanos need) {
  bool mine = false;
  const WallNanos started = shared_.stamps.next();
  auto flight = flights_.join(FlightKind::kName, path, need, started, mine);
  if (!mine) return flight;
  FlightPtr subtree;
  if (prior.subtree) {
    // Its page is this question's third LIST; who looks below meanwhile waits for it instead of asking again.
    subtree = flights_.join(FlightKind::kSubtree, path + "/", need, started, mine);
    prior.subtree = mine;
  }
  std::make_shared<NameQuestion>(shared_from_this(), question(ctx, store), flight, subtree, prior)->start();
  return flight;
}

FlightPtr Engine::ask_object(const RequestContext& ctx, const store::ObjectStorePtr& store, const std::string& path,
                             WallNanos need) {
  bool mine = false;
  auto flight = flights_.join(FlightKind::kObject, path, need, shared_.stamps.next(), mine);
  const NameProbe::Prior prior{.file = true, .folder = false, .subtree = false};
  if (mine) std::make_shared<NameQuestion>(shared_from_this(), question(ctx, store), flight, nullptr, prior)->start();
  return flight;
}

}  // namespace thermo::catalog
