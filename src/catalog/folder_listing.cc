// Engine::list_folder: one delimited page, and a SplitPlan driven by LISTs when that is not all.

#include <utility>

#include "catalog/engine.h"
#include "catalog/page_order.h"

namespace thermo::catalog {
namespace {

/// Keys and groups of a page, merged into one order.
std::vector<std::string_view> entries_of(const store::ListPage& page) {
  std::vector<std::string_view> entries;
  entries.reserve(page.objects.size() + page.prefixes.size());
  auto group = page.prefixes.begin();
  for (const auto& object : page.objects) {
    for (; group != page.prefixes.end() && *group < object.key; ++group) entries.emplace_back(*group);
    entries.emplace_back(object.key);
  }
  entries.insert(entries.end(), group, page.prefixes.end());
  return entries;
}

}  // namespace

class Engine::FolderListing : public std::enable_shared_from_this<Engine::FolderListing> {
 public:
  FolderListing(std::shared_ptr<Engine> engine, Question question, FlightPtr flight, std::uint32_t page_limit)
      : engine_(std::move(engine)),
        question_(std::move(question)),
        flight_(std::move(flight)),
        page_limit_(page_limit),
        vouching_(engine_->applier_.vouch(flight_->subject, flight_->started)),
        plan_(flight_->subject, {.parallel = engine_->shared_.list_threads}) {}

  void start() {
    Stretch first;
    {
      MutexLock lock(mutex_);
      first = plan_.start();
      outstanding_ = 1;
    }
    send(first);
  }

 private:
  void send(const Stretch& stretch) {
    store::ListRequest request;
    request.prefix = flight_->subject;
    request.delimiter = "/";
    request.start_after = stretch.after;
    request.continuation = stretch.token;
    engine_->list(question_, std::move(request), engine_->shared_.folder_lists,
                  [self = shared_from_this(), id = stretch.id](const Result<store::ListPage>& page) { self->answer(id, page); });
  }

  void answer(std::uint64_t id, const Result<store::ListPage>& page) {
    if (!page) return end_one(fail(page.error()), false);
    const auto entries = entries_of(*page);
    const bool truncated = page->truncated;
    if (truncated && entries.empty()) {
      return end_one(fail(ErrorCode::kCorrupt, "the store sent an empty page that claims to go on"), false);
    }
    SplitPlan::Step step;
    Coverage coverage{flight_->subject, false, {}, {}, flight_->started};
    bool only_page = false;
    {
      MutexLock lock(mutex_);
      only_page = plan_.requests() == 1 && !truncated;
      step = plan_.on_page(id, entries, truncated, page->continuation);
    }
    coverage.after = step.after;
    coverage.until = step.until;
    const bool usable = engine_->in_order(question_, coverage, *page) && !ends_in_doubt(coverage, *page);
    {
      MutexLock lock(mutex_);
      unordered_ = unordered_ || !usable;
      if (unordered_) {
        step.next.clear();
      } else if (error_ || plan_.pages() > page_limit_) {
        // Nobody waits for the rest any more.
        capped_ = capped_ || !step.next.empty();
        step.next.clear();
      }
      outstanding_ += step.next.size();
    }
    for (const auto& stretch : step.next) send(stretch);
    if (!usable) return end_one({}, false);

    std::optional<Applier::Completion> completion;
    if (only_page) completion = {flight_->started, 1};
    auto applied = engine_->applier_.page(question_.ctx, coverage, *page, completion);
    if (applied) engine_->notify(applied->notices);
    const bool nothing = applied && applied->nothing_there;
    if (applied && applied->overtaken) {
      MutexLock lock(mutex_);
      capped_ = true;  // others know better; this listing vouches for nothing
    }
    end_one(applied ? Result<void>() : fail(applied.error()), nothing, only_page);
  }

  void end_one(const Result<void>& outcome, bool nothing_there, bool complete = false) {
    bool last = false;
    bool first = false;
    bool unordered = false;
    bool capped = false;
    std::optional<Error> error;
    Applier::Milestone milestone;
    {
      MutexLock lock(mutex_);
      if (!outcome && !error_) error_ = outcome.error();
      last = --outstanding_ == 0;
      first = !std::exchange(began_, true);
      error = error_;
      unordered = unordered_;
      capped = capped_;
      milestone.pages = static_cast<std::uint32_t>(plan_.pages());
      if (!capped_) milestone.listed = flight_->started;
    }
    if (!last) {
      if (first) engine_->flights_.progress(flight_);
      return;
    }
    if (unordered && !error) return engine_->list_gathered(question_, flight_, page_limit_);
    Result<void> reached;
    if (error) reached = fail(error->within("list '" + flight_->subject + "'"));
    else if (!complete) reached = engine_->applier_.reached(question_.ctx, flight_->subject, milestone);
    engine_->flights_.finish(flight_, reached, {.nothing_there = nothing_there, .partial = capped});
  }

  const std::shared_ptr<Engine> engine_;
  const Question question_;
  const FlightPtr flight_;
  const std::uint32_t page_limit_;
  const Vouching::Token vouching_;
  Mutex mutex_{LockRank::kCatalog, "catalog folder listing"};
  SplitPlan plan_ GUARDED_BY(mutex_);
  std::size_t outstanding_ GUARDED_BY(mutex_) = 0;
  bool began_ GUARDED_BY(mutex_) = false;
  bool capped_ GUARDED_BY(mutex_) = false;
  bool unordered_ GUARDED_BY(mutex_) = false;
  std::optional<Error> error_ GUARDED_BY(mutex_);
};

FlightPtr Engine::list_folder(const RequestContext& ctx, const store::ObjectStorePtr& store, const std::string& prefix,
                              std::uint32_t page_limit, WallNanos need, WallNanos now) {
  bool mine = false;
  auto flight = flights_.join(FlightKind::kFolder, prefix, need, now, mine);
  if (!mine) return flight;
  if (lists_in_order()) std::make_shared<FolderListing>(shared_from_this(), question(ctx, store), flight, page_limit)->start();
  else list_gathered(question(ctx, store), flight, page_limit);
  return flight;
}

}  // namespace thermo::catalog
