#include "catalog/view.h"

#include <algorithm>
#include <utility>

namespace thermo::catalog {
namespace {

// More questions than this in one call mean that what is learnt is expired as fast as it comes.
constexpr int kMostRounds = 16;
constexpr std::string_view kObjectMark = ".object:";

bool own_fault(const Error& error) {
  // Of whoever started the flight: his deadline, not mine.
  return error.code() == ErrorCode::kTimeout || error.code() == ErrorCode::kCancelled;
}

/// True the first time.
bool join_once(const FlightPtr& flight, std::vector<FlightPtr>& joined) {
  if (!flight || std::find(joined.begin(), joined.end(), flight) != joined.end()) return false;
  joined.push_back(flight);
  return true;
}

Error keeps_expiring(std::string_view what) {
  return Error(ErrorCode::kUnavailable, "'" + std::string(what) + "' was expired again as often as the store was asked");
}

}  // namespace

MountView::MountView(std::shared_ptr<Engine> engine, store::ObjectStorePtr store, std::string root, Freshness freshness)
    : engine_(std::move(engine)), store_(std::move(store)), root_(std::move(root)), freshness_(freshness) {
  engine_->knowledge().add_root(root_);
  engine_->add_listener(root_, listener_);
}

MountView::~MountView() { listener_->set(nullptr); }

WallNanos MountView::need() const {
  if (immutable()) return 1;
  if (strict()) return engine_->shared().stamps.next();
  // `+ 1`: what is exactly one TTL old has expired.
  const WallNanos now = engine_->shared().stamps.now();
  return std::max<WallNanos>(1, now - std::min<WallNanos>(now, freshness_.ttl.count()) + 1);
}

Nanos MountView::remaining(WallNanos since) const {
  if (immutable()) return Nanos::max();
  const Nanos age(std::max<WallNanos>(0, engine_->shared().stamps.now() - since));
  return std::max(Nanos::zero(), freshness_.ttl - age);
}

Result<Found> MountView::lookup(const RequestContext& ctx, const std::string& prefix, std::string_view name) {
  if (name.size() > kMaxNameBytes) {
    return fail(ErrorCode::kNameTooLong, "a name of " + std::to_string(name.size()) + " bytes; the limit is 255");
  }
  if (!valid_name(name)) return Found{std::nullopt, Nanos::zero()};
  if (name.starts_with(kObjectMark) && valid_name(name.substr(kObjectMark.size()))) {
    TRY_ASSIGN(const auto hidden, hidden_object(ctx, prefix, name.substr(kObjectMark.size())));
    if (hidden) return Found{Entry(*hidden->name->file), remaining(hidden->since)};
  }
  TRY_ASSIGN(auto known, resolve(ctx, prefix, name));
  if (!known.name->file && !known.name->folder_exists() && !strict()) {
    // First that it was told, then another look: from here on a name that comes is noticed by one or by the other.
    engine_->knowledge().told_absent().add(prefix + std::string(name));
    TRY_ASSIGN(known, resolve(ctx, prefix, name));
  }
  Found found{std::nullopt, remaining(known.since)};
  if (known.name->folder_exists()) found.entry = *known.name->folder;
  else if (known.name->file) found.entry = *known.name->file;
  return found;
}

Result<std::optional<MountView::Known>> MountView::hidden_object(const RequestContext& ctx, const std::string& prefix,
                                                                 std::string_view name) {
  auto& knowledge = engine_->knowledge();
  const WallNanos needed = need();
  TRY_ASSIGN(auto known, resolve(ctx, prefix, name));
  if (!known.name->folder_exists()) return std::optional<Known>();
  // A listing of the folder above has told of the object; a question about the name may have ended with the folder alone. The
  // date first: what is read after it is no older.
  const std::string path = prefix + std::string(name);
  TRY_ASSIGN(const auto listed, knowledge.listing_since(prefix, root_, ctx.may_wait));
  TRY_ASSIGN(known.name, knowledge.name(path, ctx.may_wait));
  if (!known.name->folder_exists()) return std::optional<Known>();
  const WallNanos told = std::max(listed, known.name->file_checked);
  if (told < needed || told <= knowledge.floors().for_name(path)) {
    if (!ctx.may_wait) return fail(ErrorCode::kWouldWaitStore);
    const auto flight = engine_->ask_object(ctx, store_, path, needed);
    TRY(ended(ctx, flight));
    TRY_ASSIGN(known.name, knowledge.name(path, true));
    known.since = flight->started;
  }
  if (!known.name->folder_exists() || !known.name->file) return std::optional<Known>();
  return std::optional<Known>(std::move(known));
}

Result<void> MountView::ended(const RequestContext& ctx, const FlightPtr& flight) {
  const auto state = engine_->flights().wait(ctx, engine_->shared().clock, flight, 0);
  if (!state) return fail(state.error());
  if (state->error) return fail(*state->error);
  return {};
}

Result<MountView::Known> MountView::resolve(const RequestContext& ctx, const std::string& prefix, std::string_view name) {
  auto& knowledge = engine_->knowledge();
  const std::string path = prefix + std::string(name);
  const WallNanos begun = engine_->shared().stamps.next();
  const WallNanos needed = need();
  WallNanos answered = 0;
  std::vector<FlightPtr> joined;
  for (int round = 0; round < kMostRounds; ++round) {
    TRY_ASSIGN(const auto dated, knowledge.dated_name(path, root_, ctx.may_wait));
    const auto& [known, since] = dated;
    // What the store said after this call began is an answer, even if it was declared expired meanwhile.
    if (since >= needed || answered >= begun) {
      (round == 0 ? engine_->shared().lookups_known : engine_->shared().lookups_asked).add();
      return Known{known, std::max(since, answered)};
    }
    if (!ctx.may_wait) return fail(ErrorCode::kWouldWaitStore);
    TRY(ctx.check(engine_->shared().clock));
    TRY_ASSIGN(const auto flight, next_for_name(ctx, prefix, name, *known, needed, joined));
    // Only an answer about this very name, or its whole folder, can fail the lookup; others were joined in hope.
    const bool decisive = flight->kind == FlightKind::kName || flight->kind == FlightKind::kFolder;
    TRY_ASSIGN(const auto state, engine_->flights().wait(ctx, engine_->shared().clock, flight, 0));
    if (decisive && state.error && !own_fault(*state.error)) return fail(*state.error);
    // A folder without keys has no names either; nothing of it is written down.
    const bool told = flight->kind == FlightKind::kName || (flight->kind == FlightKind::kFolder && state.nothing_there);
    if (told && state.done && !state.error && !state.partial) answered = flight->started;
  }
  return fail(keeps_expiring(path));
}

FlightPtr MountView::subtree_under_way(std::string_view prefix, WallNanos need, std::vector<FlightPtr>& joined) {
  for (std::string_view at = prefix;; at = parent_prefix(at)) {
    if (auto flight = engine_->flights().find(FlightKind::kSubtree, at, need); join_once(flight, joined)) return flight;
    if (at.size() <= root_.size()) return nullptr;
  }
}

Result<FlightPtr> MountView::next_for_name(const RequestContext& ctx, const std::string& prefix, std::string_view name,
                                           const KnownName& known, WallNanos need, std::vector<FlightPtr>& joined) {
  auto& flights = engine_->flights();
  // The folder is being listed: its first page, or all of it, may tell. So may the page of a subtree above.
  if (auto flight = flights.find(FlightKind::kFolder, prefix, need); join_once(flight, joined)) return flight;
  if (auto flight = subtree_under_way(prefix, need, joined)) return flight;
  const std::string path = prefix + std::string(name);
  if (auto flight = flights.find(FlightKind::kName, path, need)) return flight;

  TRY_ASSIGN(const auto folder, engine_->knowledge().name(folder_path(prefix), true));
  const std::uint32_t worth =
      strict() ? static_cast<std::uint32_t>(folder->pages == 1) : engine_->pages_worth(prefix, name, *folder, need);
  const bool tried =
      std::any_of(joined.begin(), joined.end(), [](const auto& flight) { return flight->kind == FlightKind::kFolder; });
  if (worth != 0 && !tried && engine_->knowledge().floors().of_key(path) == 0) {
    auto flight = engine_->list_folder(ctx, store_, prefix, worth, need, engine_->shared().stamps.next());
    if (join_once(flight, joined)) return flight;
  }
  NameProbe::Prior prior;
  prior.file = known.file.has_value() && !known.folder_exists();
  prior.folder = known.folder_exists();
  prior.subtree = !strict() && engine_->lists_in_order() && (known.folder_exists() ? known.sealed_at != 0 : !known.file);
  return engine_->ask_name(ctx, store_, path, prior, need);
}

Result<void> MountView::list(const RequestContext& ctx, const std::string& prefix, std::string_view after,
                             const std::function<bool(const ListedName&)>& visit, Told* told) {
  auto& knowledge = engine_->knowledge();
  const WallNanos needed = told != nullptr && told->since != 0 ? std::min(need(), told->since) : need();
  const auto missing = [&] { return fail(ErrorCode::kNotFound, "the folder '" + prefix + "' does not exist (any more)"); };
  const WallNanos begun = engine_->shared().stamps.next();
  WallNanos answered = 0;
  std::vector<FlightPtr> joined;
  for (int round = 0; round < kMostRounds; ++round) {
    TRY_ASSIGN(const auto known_since, knowledge.listing_since(prefix, root_, ctx.may_wait));
    const WallNanos since = std::max(known_since, answered);
    if (known_since >= needed || answered >= begun) {
      TRY_ASSIGN(const auto known, knowledge.name(folder_path(prefix), ctx.may_wait));
      if (!known->folder_exists() && prefix != root_) return missing();
      if (!strict() && after.empty() && engine_->walk_position(prefix, needed, false).relation == Relation::kLastPage) {
        // The walker is on the last page that was read: have the next one ready.
        engine_->walk_on(ctx.at(Priority::kPrefetch), store_, prefix, needed);
      }
      if (told != nullptr) *told = {remaining(since), since};
      return knowledge.children(prefix, after, visit, ctx.may_wait);
    }
    if (!ctx.may_wait) return fail(ErrorCode::kWouldWaitStore);
    TRY(ctx.check(engine_->shared().clock));
    TRY_ASSIGN(const auto flight, next_for_listing(ctx, prefix, needed, joined));
    Flights::State state;
    do {
      // Progress of a listing wakes too: a page of the subtree may have answered first.
      TRY_ASSIGN(state, engine_->flights().wait(ctx, engine_->shared().clock, flight, state.stage));
      if (state.done) break;
      TRY_ASSIGN(const auto now_since, knowledge.listing_since(prefix, root_, true));
      if (now_since >= needed) break;
    } while (true);
    if (flight->kind != FlightKind::kFolder) continue;
    if (state.done && state.error && !own_fault(*state.error)) return fail(*state.error);
    // The first may have been joined and cut short for being big; the second is whole.
    if (state.done && !state.error && !state.partial && round > 0) answered = flight->started;
    if (state.done && state.nothing_there) {
      if (prefix != root_) return missing();
      if (told != nullptr) *told = {remaining(flight->started), flight->started};
      return {};
    }
  }
  return fail(keeps_expiring(prefix));
}

Result<FlightPtr> MountView::next_for_listing(const RequestContext& ctx, const std::string& prefix, WallNanos need,
                                              std::vector<FlightPtr>& joined) {
  constexpr std::uint32_t kAllPages = UINT32_MAX;
  if (strict()) return engine_->list_folder(ctx, store_, prefix, kAllPages, need, engine_->shared().stamps.next());
  // A lookup, or the listing of a folder above, has just asked for all of it.
  if (auto flight = subtree_under_way(prefix, need, joined)) return flight;
  const bool first =
      std::none_of(joined.begin(), joined.end(), [](const auto& flight) { return flight->kind == FlightKind::kWalk; });
  const auto position = engine_->walk_position(prefix, need, first);
  if (position.relation == Relation::kFrontier && first) {
    if (auto flight = engine_->walk_on(ctx, store_, prefix, need); join_once(flight, joined)) return flight;
  }
  TRY_ASSIGN(const auto known, engine_->knowledge().name(folder_path(prefix), true));
  bool subtree = position.relation != Relation::kFrontier && position.subtree_worth && engine_->lists_in_order();
  // One that is too big for a page was just tried; a flat one is known by its own listing.
  if (std::any_of(joined.begin(), joined.end(), [&](const auto& flight) { return flight->subject == prefix; })) subtree = false;
  if (subtree && (known->listed_at != 0 || known->sealed_at != 0)) {
    TRY_ASSIGN(subtree, has_subfolders(prefix));
  }
  // Of one age, so that neither overtakes the other.
  const WallNanos now = engine_->shared().stamps.next();
  auto flight = engine_->list_folder(ctx, store_, prefix, kAllPages, need, now);
  if (subtree) joined.push_back(engine_->read_subtree(ctx, store_, prefix, need, now));
  return flight;
}

Result<bool> MountView::has_subfolders(const std::string& prefix) {
  auto& knowledge = engine_->knowledge();
  const std::string header = folder_key(knowledge.store(), prefix);
  bool found = false;
  TRY(knowledge.kv().scan(header, [&](std::string_view key, std::string_view, io::KvStore::Cursor&) {
    if (!key.starts_with(header)) return false;
    found = key.size() > header.size();
    return !found;
  }));
  return found;
}

Result<Entry> MountView::by_number(const RequestContext& ctx, Number number) {
  TRY_ASSIGN(auto entry, engine_->knowledge().by_number(number, ctx.may_wait));
  const auto* file = std::get_if<File>(&entry);
  const std::string& key = file != nullptr ? file->key : std::get<Folder>(entry).prefix;
  if (!key.starts_with(root_))
    return fail(ErrorCode::kStale, "file number " + std::to_string(number) + " is not below this mount");
  return entry;
}

Result<Folder> MountView::folder(const RequestContext& ctx, const std::string& prefix) {
  return engine_->applier().ensure(ctx, prefix);
}

void MountView::expire(const std::string& key) { engine_->knowledge().floors().expire(key, engine_->shared().stamps.next()); }

void MountView::expire_prefix(const std::string& prefix) { engine_->expire_prefix(prefix); }

}  // namespace thermo::catalog
