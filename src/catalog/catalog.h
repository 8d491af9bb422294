#pragma once
// What is known of a store's keys: (store, key) -> version, flat and in S3 order, kept in RocksDB across restarts; which prefixes
// were listed in full and since when; the number, generation and st_ino of every file and folder.
//
// Never a HEAD per entry: listings answer lookups. Only the mapping key -> version expires; cached bytes belong to versions.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/context.h"
#include "base/metrics.h"
#include "io/kv_store.h"
#include "store/object_store.h"

namespace thermo::catalog {

/// Longest name of a file or folder that can be shown (NAME_MAX); longer ones are counted as skipped.
inline constexpr std::size_t kMaxNameBytes = 255;

/// A file's number: 44 bits, from the catalog, never reused, the same after a restart. 0 = none. Numbers below kFirstNumber are
/// reserved.
using Number = std::uint64_t;
inline constexpr Number kFirstNumber = 16;

struct File {
  std::string key;
  std::uint64_t size = 0;
  std::string etag;
  WallNanos mtime = 0;
  store::VersionId version;
  Number number = 0;
  std::uint32_t generation = 1;  ///< 20 bits; goes up when a foreign version replaces the object
  std::uint64_t ino = 0;         ///< hash of (store, key, version at first sight): changes with a foreign version
};

struct Folder {
  std::string prefix;  ///< ends in '/', or empty for the bucket's root
  Number number = 0;
  std::uint64_t ino = 0;     ///< hash of (store, prefix)
  WallNanos first_seen = 0;  ///< its mtime as shown: stable
};

using Entry = std::variant<File, Folder>;

/// An answer and for how long it may be believed without asking again (0 = strict).
struct Found {
  std::optional<Entry> entry;  ///< nullopt: the name does not exist
  Nanos valid{0};
};

struct ListedName {
  std::string_view name;  ///< last component, without '/'
  const Entry* entry;
};

/// Told when a foreign version (or a removal) is noticed. Called without locks on any thread; must not call back into the
/// catalog.
class Listener {
 public:
  virtual ~Listener() = default;
  /// `prefix` is the folder, `name` the entry whose cached dentry is wrong now.
  virtual void changed(const std::string& prefix, const std::string& name) = 0;
};

struct Freshness {
  Nanos ttl = std::chrono::seconds(60);  ///< 0: revalidate at each lookup ("strict"); Nanos::max(): "immutable"
};

/// Keys that exist but cannot be a name here (empty component, "." or "..", longer than 255 bytes, NUL). Never fatal, never
/// hidden silently.
struct Skipped {
  std::uint64_t count = 0;
  std::vector<std::string> examples;  ///< at most 16 keys
};

/// One store as one mount sees it. Thread-safe. With ctx.may_wait false: kWouldWaitDevice / kWouldWaitStore.
/// How old a listing is that was handed out.
struct Told {
  Nanos valid{0};       ///< may be believed so much longer
  WallNanos since = 0;  ///< by the catalog's own time; 0 = nothing was told yet
};

class View {
 public:
  virtual ~View() = default;

  /// The file or folder `name` in `prefix`. Where both the object `p/n` and keys under `p/n/` exist the folder wins; the object
  /// is then reached by the name ".object:n" (not listed). kNameTooLong for names over kMaxNameBytes. A throttled or unreachable
  /// store is an error, never "does not exist".
  [[nodiscard]] virtual Result<Found> lookup(const RequestContext& ctx, const std::string& prefix, std::string_view name) = 0;

  /// Calls `visit` for the names of `prefix` in key order, those > `after` (empty: all), until it returns false. Lists the store
  /// where what is known has expired. kNotFound when the folder does not exist (any more); the view's root prefix always exists.
  /// `told` (optional) gets how long the answer may be believed and as of when it is; given again with the next part of the same
  /// listing, that part is no older and need not be newer.
  [[nodiscard]] virtual Result<void> list(const RequestContext& ctx, const std::string& prefix, std::string_view after,
                                          const std::function<bool(const ListedName&)>& visit, Told* told) = 0;

  /// By number; kStale when it is not known (any more). Files answer their newest known generation.
  [[nodiscard]] virtual Result<Entry> by_number(const RequestContext& ctx, Number number) = 0;

  /// The folder record of `prefix` (creates one: number and ino are stable). For the mount's root.
  [[nodiscard]] virtual Result<Folder> folder(const RequestContext& ctx, const std::string& prefix) = 0;

  /// The key turned out to be another version, or gone (a 412 or 404 on a GET): the next lookup asks the store.
  virtual void expire(const std::string& key) = 0;
  /// Expires what is known of a folder and below ("refresh").
  virtual void expire_prefix(const std::string& prefix) = 0;

  virtual void set_listener(Listener* listener) = 0;  ///< nullptr to stop; returns after a running call ended
  [[nodiscard]] virtual Skipped skipped() const = 0;
  [[nodiscard]] virtual store::ObjectStore& store() = 0;
};

struct Options {
  std::string path;  ///< database folder
  std::uint64_t kv_cache_bytes = 24u << 20;
  std::size_t list_threads = 16;  ///< LISTs in flight at most
  const Clock* clock = &Clock::system();
  metrics::Registry* metrics = nullptr;  ///< required
};

struct Stats {
  std::uint64_t files = 0;  ///< known files (estimate after a restart)
  std::uint64_t folders = 0;
  std::uint64_t memory_bytes = 0;
};

/// Thread-safe; outlives its views.
class Catalog {
 public:
  virtual ~Catalog() = default;
  [[nodiscard]] virtual std::shared_ptr<View> view(store::ObjectStorePtr store, const std::string& root_prefix,
                                                   Freshness freshness) = 0;
  [[nodiscard]] virtual Stats stats() = 0;
  /// Writes down and closes. Idempotent.
  virtual void shutdown() = 0;
};

/// A corrupt database is set aside and started anew, with a warning: everything in it can be asked of the stores again (st_ino of
/// a file is the same again as long as its version is; numbers start at a new, higher range, so that old nodeids answer kStale).
[[nodiscard]] Result<std::unique_ptr<Catalog>> open_catalog(const Options& options);

}  // namespace thermo::catalog
