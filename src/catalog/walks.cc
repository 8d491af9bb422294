// Engine: subtrees read as undelimited pages, and depth-first walks that go on from one page to the next.

#include <algorithm>
#include <utility>

#include "catalog/engine.h"
#include "catalog/page_order.h"

namespace thermo::catalog {
namespace {
constexpr std::size_t kWalks = 64;
}

FlightPtr Engine::read_subtree(const RequestContext& ctx, const store::ObjectStorePtr& store, const std::string& prefix,
                               WallNanos need, WallNanos now) {
  bool mine = false;
  auto flight = flights_.join(FlightKind::kSubtree, prefix, need, now, mine);
  if (!mine) return flight;
  const auto asked = question(ctx, store);
  store::ListRequest request;
  request.prefix = prefix;
  list(asked, std::move(request), shared_.walk_lists,
       [self = shared_from_this(), asked, flight](const Result<store::ListPage>& page) {
         self->subtree_page(asked, flight, page);
       });
  return flight;
}

void Engine::subtree_page(const Question& question, const FlightPtr& flight, const Result<store::ListPage>& page) {
  const std::string& prefix = flight->subject;
  if (!page) return flights_.finish(flight, fail(page.error()));
  if (page->truncated && page->objects.empty()) {
    return flights_.finish(flight, fail(ErrorCode::kCorrupt, "the store sent an empty page that claims to go on"));
  }
  Coverage coverage{prefix, true, {}, {}, flight->started};
  std::optional<Applier::Completion> completion;
  if (page->truncated) coverage.until = page->objects.back().key;
  else completion = {flight->started, 1};
  if (!in_order(question, coverage, *page)) return flights_.finish(flight, fail(unordered_error()));
  auto vouching = page->truncated ? applier_.vouch(prefix, flight->started) : nullptr;
  auto applied = applier_.page(question.ctx, coverage, *page, completion);
  if (!applied) return flights_.finish(flight, fail(applied.error()));
  if (applied->overtaken) return flights_.finish(flight, {});
  {
    MutexLock lock(walks_mutex_);
    walks_.erase(prefix);
    if (page->truncated) {
      if (walks_.size() >= kWalks) {
        walks_.erase(std::min_element(walks_.begin(), walks_.end(),
                                      [](const auto& a, const auto& b) { return a.second.since() < b.second.since(); }));
      }
      walks_.emplace(prefix, WalkCursor(prefix, coverage.until, page->continuation, flight->started, std::move(vouching)));
    }
  }
  notify(applied->notices);
  flights_.finish(flight, {}, {.nothing_there = applied->nothing_there, .partial = false});
  // Who waits for the folder's delimited listing may have the answer already.
  if (const auto listing = flights_.find(FlightKind::kFolder, prefix, 0)) flights_.progress(listing);
}

WalkCursor* Engine::nearest_walk(std::string_view prefix, WallNanos need) {
  for (std::string_view at = prefix; !at.empty();) {
    at = parent_prefix(at);
    const auto it = walks_.find(at);
    if (it != walks_.end() && it->second.since() >= need) return &it->second;
  }
  return nullptr;
}

Engine::WalkPosition Engine::walk_position(std::string_view prefix, WallNanos need, bool asks) {
  MutexLock lock(walks_mutex_);
  if (walks_.empty()) return {};
  WalkCursor* walk = nearest_walk(prefix, need);
  if (walk == nullptr) return {};
  WalkPosition position{walk->relation(prefix), true};
  if (asks && position.relation == Relation::kAhead) position.subtree_worth = walk->jump();
  return position;
}

FlightPtr Engine::walk_on(const RequestContext& ctx, const store::ObjectStorePtr& store, const std::string& prefix,
                          WallNanos need) {
  std::string root;
  store::ListRequest request;
  WallNanos since = 0;
  {
    MutexLock lock(walks_mutex_);
    const WalkCursor* walk = nearest_walk(prefix, need);
    if (walk == nullptr) return nullptr;
    root = walk->root();
    request.prefix = root;
    request.continuation = walk->token();
    request.start_after = walk->frontier();
    since = walk->since();
  }
  bool mine = false;
  auto flight = flights_.join(FlightKind::kWalk, root, since, shared_.stamps.next(), mine);
  if (!mine) return flight;
  {
    // The page before may have come between the look at the cursor and the start of this flight.
    MutexLock lock(walks_mutex_);
    const auto it = walks_.find(root);
    if (it == walks_.end() || it->second.since() != since) {
      flights_.finish(flight, {});
      return flight;
    }
    request.continuation = it->second.token();
    request.start_after = it->second.frontier();
  }
  const WalkStep from{since, request.start_after};
  const auto asked = question(ctx, store);
  list(asked, std::move(request), shared_.walk_lists,
       [self = shared_from_this(), asked, flight, from](const Result<store::ListPage>& page) {
         self->walk_page(asked, flight, from, page);
       });
  return flight;
}

void Engine::walk_page(const Question& question, const FlightPtr& flight, const WalkStep& from,
                       const Result<store::ListPage>& page) {
  const std::string& root = flight->subject;
  if (!page) return flights_.finish(flight, fail(page.error()));
  Coverage coverage{root, true, {}, {}, flight->started};
  WallNanos since = 0;
  {
    MutexLock lock(walks_mutex_);
    const auto it = walks_.find(root);
    // Another walk may have begun there while this page was under way: that one goes on from its own place.
    if (it == walks_.end() || it->second.since() != from.since || it->second.frontier() != from.after) {
      return flights_.finish(flight, {});
    }
    if (page->truncated && page->objects.empty()) {
      walks_.erase(it);
      return flights_.finish(flight, {});
    }
    coverage.after = from.after;
    coverage.continues_since = since = from.since;
  }
  if (page->truncated) coverage.until = page->objects.back().key;
  if (!in_order(question, coverage, *page)) {
    MutexLock lock(walks_mutex_);
    walks_.erase(root);
    return flights_.finish(flight, {});
  }
  auto applied = applier_.page(question.ctx, coverage, *page, std::nullopt);
  Result<void> outcome;
  if (!applied) outcome = fail(applied.error());
  else if (!page->truncated && !applied->overtaken)
    outcome = applier_.reached(question.ctx, root, {.listed = 0, .sealed = since, .pages = 0});
  {
    MutexLock lock(walks_mutex_);
    const auto it = walks_.find(root);
    if (it != walks_.end() && it->second.since() == since) {
      if (outcome && page->truncated && !applied->overtaken) it->second.on_page(coverage.until, page->continuation);
      else walks_.erase(it);
    }
  }
  if (applied) notify(applied->notices);
  flights_.finish(flight, outcome);
}

}  // namespace thermo::catalog
