#include "catalog/applier.h"

#include <algorithm>

#include "base/hash.h"
#include "catalog/change_set.h"

namespace thermo::catalog {
namespace {
// Keys that cannot be shown are told apart up to this many; beyond it a key that is listed again counts again.
constexpr std::size_t kSkippedTracked = 65'536;
constexpr std::size_t kSkippedExamples = 16;
}  // namespace

Result<void> WriterTurn::enter(const RequestContext& ctx, const Clock& clock) {
  MutexLock lock(mutex_);
  while (taken_) {
    TRY(ctx.check(clock));
    if (ctx.deadline == MonoTime::max() && !ctx.stop.stop_possible()) free_.wait(mutex_);
    else (void)free_.wait_until(mutex_, std::min(ctx.deadline, std::chrono::steady_clock::now() + Millis(100)));
  }
  taken_ = true;
  return {};
}

void WriterTurn::leave() {
  MutexLock lock(mutex_);
  taken_ = false;
  free_.notify_one();
}

Result<Applier::Outcome> Applier::name(const RequestContext& ctx, const std::string& path, const NameFacts& facts) {
  TRY(shared_.turn.enter(ctx, shared_.clock));
  Outcome outcome;
  const auto apply = [&]() -> Result<void> {
    ChangeSet changes(knowledge_, shared_);
    bool exists = false;
    TRY_ASSIGN(const auto listed, knowledge_.listing_since(std::string(parent_prefix(path)), {}, /*may_wait=*/true));
    // Below it too: where the folder is said to be gone, all that is being told of it would go.
    const bool told_below = facts.folder && !*facts.folder && vouching_.overtakes(path + "/", true, facts.started);
    outcome.overtaken = told_below || listed > facts.started || vouching_.overtakes(parent_prefix(path), false, facts.started);
    if (outcome.overtaken) return {};
    if (facts.folder && *facts.folder) {
      exists = true;
      TRY_ASSIGN(auto record, changes.ensure_folder(path + "/", facts.started));
      record.seen_at = std::max(record.seen_at, facts.started);
      changes.put_folder(path + "/", record);
    } else if (facts.folder) {
      TRY(changes.remove_subtree(path + "/", facts.started));
    }
    if (facts.file) {
      TRY_ASSIGN(const auto bytes, knowledge_.kv().get(file_key(knowledge_.store(), path)));
      std::optional<FileRecord> known;
      if (bytes) {
        TRY_ASSIGN(known, decode_file(*bytes));
      }
      if (known && known->checked_at > facts.started) {
        exists = true;  // a later answer is in already
      } else if (*facts.file) {
        exists = true;
        TRY(changes.ensure_folder(std::string(parent_prefix(path)), facts.started));
        const ChangeSet::Look look{facts.started, facts.folder && !*facts.folder};
        if (known) TRY(changes.update_file(**facts.file, *known, look, /*note=*/true));
        else TRY(changes.add_file(**facts.file, look));
      } else if (known) {
        TRY(changes.remove_file(path, *known));
      }
    }
    if (!exists && facts.file && facts.folder) changes.absent(path, facts.started);
    TRY(changes.commit());
    outcome.nothing_there = !exists;
    outcome.notices = std::move(changes.notices());
    return {};
  };
  const auto applied = apply();
  shared_.turn.leave();
  TRY(applied);
  // Where a folder decided the name, nobody has looked at the object that it may hide.
  if (facts.file) knowledge_.floors().satisfied(path, facts.started);
  return outcome;
}

Result<void> Applier::reached(const RequestContext& ctx, const std::string& prefix, const Milestone& milestone) {
  TRY(shared_.turn.enter(ctx, shared_.clock));
  const auto apply = [&]() -> Result<void> {
    ChangeSet changes(knowledge_, shared_);
    TRY_ASSIGN(auto record, changes.folder(prefix));
    if (!record) return {};
    if (!record->exists()) {
      // Gone meanwhile; or a root of which nothing was seen yet: how big it is counts all the same.
      if (milestone.pages == 0) return {};
      record->pages = milestone.pages;
      changes.put_folder(prefix, *record);
      return changes.commit();
    }
    record->listed_at = std::max(record->listed_at, milestone.listed);
    record->sealed_at = std::max(record->sealed_at, milestone.sealed);
    record->seen_at = std::max({record->seen_at, milestone.listed, milestone.sealed});
    if (milestone.pages != 0) record->pages = milestone.pages;
    changes.put_folder(prefix, *record);
    return changes.commit();
  };
  const auto applied = apply();
  shared_.turn.leave();
  TRY(applied);
  knowledge_.floors().satisfied_listing(prefix, std::max(milestone.listed, milestone.sealed));
  return {};
}

Result<Folder> Applier::ensure(const RequestContext& ctx, const std::string& prefix) {
  TRY_ASSIGN(const auto known, knowledge_.name(folder_path(prefix), ctx.may_wait));
  if (known->folder) return *known->folder;
  if (!ctx.may_wait) return fail(ErrorCode::kWouldWaitDevice);
  TRY(shared_.turn.enter(ctx, shared_.clock));
  const auto make = [&]() -> Result<Folder> {
    ChangeSet changes(knowledge_, shared_);
    // Not seen in the store: it has a number, nothing more.
    TRY_ASSIGN(const auto record, changes.ensure_folder(prefix, 0));
    TRY(changes.commit());
    return Knowledge::to_folder(prefix, record);
  };
  auto made = make();
  shared_.turn.leave();
  return made;
}

void Applier::note_skipped(std::string_view key) {
  MutexLock lock(skipped_mutex_);
  const auto hash = hash64(key);
  if (skipped_seen_.contains(hash)) return;
  if (skipped_seen_.size() < kSkippedTracked) skipped_seen_.insert(hash);
  ++skipped_.count;
  if (skipped_.examples.size() < kSkippedExamples) skipped_.examples.emplace_back(key);
}

Skipped Applier::skipped() const {
  MutexLock lock(skipped_mutex_);
  return skipped_;
}

}  // namespace thermo::catalog
