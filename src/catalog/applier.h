#pragma once
// Writes what the store said into the database: compares a page of a listing with what was known of its stretch of keys, gives
// numbers, generations and inodes, forgets what is gone. The only writer; whatever it learns becomes visible in one batch.

#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "catalog/knowledge.h"
#include "catalog/numbers.h"
#include "catalog/vouching.h"

namespace thermo::catalog {

/// The stretch of keys for which a page speaks.
struct Coverage {
  std::string prefix;
  bool deep = false;      ///< undelimited: all keys below, not only direct children
  std::string after;      ///< keys above it; empty: from the start of the prefix
  std::string until;      ///< up to and with it; empty: to the end of the prefix
  WallNanos started = 0;  ///< when the request began
  /// Deep: pages of the same walk told all of the prefix up to `after`, the first of them at this time; 0 = they did not.
  WallNanos continues_since = 0;
  [[nodiscard]] bool whole() const { return after.empty() && until.empty(); }
};

/// A name whose entry is not what it was.
struct Notice {
  std::string prefix;
  std::string name;
};

/// Lets one writer at a time in; nothing is locked while it reads and writes the database, so hits never wait for it.
class WriterTurn {
 public:
  /// kTimeout or kCancelled.
  [[nodiscard]] Result<void> enter(const RequestContext& ctx, const Clock& clock);
  void leave();

 private:
  Mutex mutex_{LockRank::kCatalog, "catalog writer"};
  CondVar free_;
  bool taken_ GUARDED_BY(mutex_) = false;
};

/// State that all writers of a catalog share.
struct WriterShared {
  WriterShared(io::KvStore& kv, const Clock& clock_in, Stamps& stamps_in) : numbers(kv), clock(clock_in), stamps(stamps_in) {}
  WriterTurn turn;
  NumberAllocator numbers;  // inside the turn
  const Clock& clock;
  Stamps& stamps;
  std::atomic<std::int64_t> files{0};
  std::atomic<std::int64_t> folders{0};
};

/// Thread-safe.
class Applier {
 public:
  Applier(Knowledge& knowledge, WriterShared& shared) : knowledge_(knowledge), shared_(shared) {}

  struct Outcome {
    std::vector<Notice> notices;
    bool nothing_there = false;  ///< the page covers the whole prefix and the store has no key below it
    bool overtaken = false;      ///< nothing was written down: something newer is known there, or is being told
  };

  /// What a page says of its stretch. `complete` with a whole or last stretch: also writes down that the prefix was listed (deep:
  /// sealed) as of `complete_since`, in `pages` pages. kCorrupt when the page is out of order.
  struct Completion {
    WallNanos since = 0;
    std::uint32_t pages = 1;
  };
  [[nodiscard]] Result<Outcome> page(const RequestContext& ctx, const Coverage& coverage, const store::ListPage& page,
                                     const std::optional<Completion>& completion);

  /// What was learnt of one name. nullopt members were not asked; an engaged `file` without object says that there is none.
  struct NameFacts {
    std::optional<std::optional<store::ObjectInfo>> file;
    std::optional<bool> folder;
    WallNanos started = 0;
  };
  [[nodiscard]] Result<Outcome> name(const RequestContext& ctx, const std::string& path, const NameFacts& facts);

  /// Writes down what the pages of a whole walk or listing amount to; 0 leaves a field as it is.
  struct Milestone {
    WallNanos listed = 0;
    WallNanos sealed = 0;
    std::uint32_t pages = 0;
  };
  [[nodiscard]] Result<void> reached(const RequestContext& ctx, const std::string& prefix, const Milestone& milestone);
  /// The record of `prefix`, made when missing.
  [[nodiscard]] Result<Folder> ensure(const RequestContext& ctx, const std::string& prefix);

  /// The store was seen to list in another order than that of keys: from here on a page of a subtree that is not the only one
  /// says nothing, because what it lacks may come later. False when it was known before.
  bool set_unordered() { return !unordered_.exchange(true); }
  [[nodiscard]] bool unordered() const { return unordered_.load(); }

  /// Before the first page of a listing that comes in several and then vouches for all of `prefix` as of `since`; ends with the
  /// token.
  [[nodiscard]] Vouching::Token vouch(const std::string& prefix, WallNanos since) { return vouching_.begin(prefix, since); }

  [[nodiscard]] Skipped skipped() const;

 private:
  friend class PageDiff;
  void note_skipped(std::string_view key);

  Knowledge& knowledge_;
  WriterShared& shared_;
  std::atomic<bool> unordered_{false};
  Vouching vouching_;
  mutable Mutex skipped_mutex_{LockRank::kCatalog, "catalog skipped"};
  std::unordered_set<std::uint64_t> skipped_seen_ GUARDED_BY(skipped_mutex_);
  Skipped skipped_ GUARDED_BY(skipped_mutex_);
};

}  // namespace thermo::catalog
