#pragma once
// Asks the store and lets the applier write down the answers: names, folders (in parallel stretches once they prove big),
// subtrees and walks. One engine per store; all mounts of that store share what it learns.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/thread_pool.h"
#include "catalog/applier.h"
#include "catalog/flights.h"
#include "catalog/name_probe.h"
#include "catalog/split_plan.h"
#include "catalog/walk_cursor.h"

namespace thermo::catalog {

/// A view's listener: swapped and called from any thread; nothing is locked while it runs.
class ListenerSlot {
 public:
  void set(Listener* listener);
  void call(const std::vector<Notice>& notices, const std::string& root);

 private:
  Mutex mutex_{LockRank::kCatalog, "catalog listener"};
  CondVar idle_;
  Listener* listener_ GUARDED_BY(mutex_) = nullptr;
  int running_ GUARDED_BY(mutex_) = 0;
};

/// What all engines of a catalog share.
struct EngineShared {
  EngineShared(io::KvStore& kv_in, const Options& options);
  io::KvStore& kv;
  const Clock& clock;
  Stamps stamps;
  WallNanos untrusted = 0;  ///< stamps up to this one are of a time that nobody knows; 0 = none
  WriterShared writer;
  const std::size_t list_threads;
  std::stop_source stop;
  metrics::Counter& name_lists;
  metrics::Counter& folder_lists;
  metrics::Counter& walk_lists;
  metrics::Gauge& lists_under_way;  ///< sent or queued, and not yet written down
  metrics::Counter& lookups_known;
  metrics::Counter& lookups_asked;
  std::atomic<std::size_t> names_gathered{0};  ///< in memory, of listings that do not come in the order of keys
  ThreadPool pool;
};

/// Thread-safe. The flights that it starts keep it alive; EngineShared outlives all.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  /// A folder is not listed further than this for the sake of its first lookups.
  static constexpr std::uint32_t kBigPages = 20;
  static constexpr std::size_t kNamesInMemory = 32'768;

  Engine(EngineShared& shared, StoreNumber number, const std::string& store_id);
  /// Reads what was declared expired before.
  [[nodiscard]] Result<void> open();

  // Each joins a flight that began at `need` or later, or starts one (as of `now`, a new stamp). None waits.
  [[nodiscard]] FlightPtr ask_name(const RequestContext& ctx, const store::ObjectStorePtr& store, const std::string& path,
                                   NameProbe::Prior prior, WallNanos need);
  /// The same for an object that may stand beside a folder of its name: a name is decided as soon as the folder is seen.
  [[nodiscard]] FlightPtr ask_object(const RequestContext& ctx, const store::ObjectStorePtr& store, const std::string& path,
                                     WallNanos need);
  /// `page_limit`: give up (without an error, and remember that it is big) when the folder takes more pages.
  [[nodiscard]] FlightPtr list_folder(const RequestContext& ctx, const store::ObjectStorePtr& store, const std::string& prefix,
                                      std::uint32_t page_limit, WallNanos need, WallNanos now);
  FlightPtr read_subtree(const RequestContext& ctx, const store::ObjectStorePtr& store, const std::string& prefix, WallNanos need,
                         WallNanos now);
  /// The next page of the walk below which `prefix` lies; null when there is none that began at `need` or later.
  FlightPtr walk_on(const RequestContext& ctx, const store::ObjectStorePtr& store, const std::string& prefix, WallNanos need);

  /// How `prefix` lies to the nearest walk, and whether a jump there deserves a page of its subtree.
  struct WalkPosition {
    Relation relation = Relation::kOutside;
    bool subtree_worth = true;
  };
  [[nodiscard]] WalkPosition walk_position(std::string_view prefix, WallNanos need, bool asks);

  /// Counts different names that were asked for one by one in a folder. How many pages of the folder are worth asking for
  /// instead: none until as many names were asked for as it has pages, so that both together cost at most twice the better one.
  [[nodiscard]] std::uint32_t pages_worth(std::string_view prefix, std::string_view name, const KnownName& folder,
                                          WallNanos need);
  /// False once the store was seen to list in another order than that of keys: then a page tells nothing of what it lacks.
  [[nodiscard]] bool lists_in_order() const { return !applier_.unordered(); }

  void expire_prefix(const std::string& prefix);
  void add_listener(const std::string& root, std::shared_ptr<ListenerSlot> slot);

  [[nodiscard]] EngineShared& shared() { return shared_; }
  [[nodiscard]] Knowledge& knowledge() { return knowledge_; }
  [[nodiscard]] Applier& applier() { return applier_; }
  [[nodiscard]] Flights& flights() { return flights_; }

 private:
  class FolderListing;
  class GatheredListing;
  class NameQuestion;
  struct Question {
    RequestContext ctx;
    store::ObjectStorePtr store;
  };
  [[nodiscard]] Question question(const RequestContext& ctx, const store::ObjectStorePtr& store) const;
  /// Runs one LIST on the pool; `then` is called on its thread (or at once on this one when the pool refuses).
  void list(const Question& question, store::ListRequest request, metrics::Counter& counter,
            std::function<void(Result<store::ListPage>)> then);
  void subtree_page(const Question& question, const FlightPtr& flight, const Result<store::ListPage>& page);
  /// Where a walk stood when its next page was asked for.
  struct WalkStep {
    WallNanos since = 0;
    std::string after;
  };
  void walk_page(const Question& question, const FlightPtr& flight, const WalkStep& from, const Result<store::ListPage>& page);
  void list_gathered(const Question& question, const FlightPtr& flight, std::uint32_t page_limit);
  /// False when the page shows that the store does not list in the order of keys. That is remembered for good, and what was
  /// learnt before counts as expired: pages may have declared names gone that only came late. Nothing may be locked.
  [[nodiscard]] bool in_order(const Question& question, const Coverage& coverage, const store::ListPage& page);
  void notify(const std::vector<Notice>& notices);
  [[nodiscard]] WalkCursor* nearest_walk(std::string_view prefix, WallNanos need) REQUIRES(walks_mutex_);

  EngineShared& shared_;
  Knowledge knowledge_;
  Applier applier_;
  Flights flights_;

  Mutex walks_mutex_{LockRank::kCatalog, "catalog walks"};
  std::map<std::string, WalkCursor, std::less<>> walks_ GUARDED_BY(walks_mutex_);

  struct OneByOne {
    std::string name;
    std::uint32_t count = 0;
    WallNanos since = 0;
  };
  Mutex singles_mutex_{LockRank::kCatalog, "catalog single lookups"};
  std::unordered_map<std::string, OneByOne> singles_ GUARDED_BY(singles_mutex_);

  Mutex listeners_mutex_{LockRank::kCatalog, "catalog listeners"};
  std::vector<std::pair<std::string, std::shared_ptr<ListenerSlot>>> listeners_ GUARDED_BY(listeners_mutex_);
};

}  // namespace thermo::catalog
