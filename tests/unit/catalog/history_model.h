#pragma once
// The naive truth for random histories: what a store held and when, and what a kernel still believes of what it was told.

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "catalog/catalog.h"

namespace thermo::catalog::test {

/// Monotonic time in nanoseconds: true age, whatever the wall clock says.
using TrueTime = std::int64_t;
inline constexpr TrueTime kLongAgo = std::numeric_limits<TrueTime>::min() / 2;
inline constexpr TrueTime kForEver = std::numeric_limits<TrueTime>::max();

/// What a name is.
struct State {
  enum class Kind { kAbsent, kFile, kFolder } kind = Kind::kAbsent;
  std::string etag;
  bool operator==(const State&) const = default;

  static State of(const std::optional<Entry>& entry) { return entry ? of(*entry) : State{}; }
  static State of(const Entry& entry) {
    const auto* file = std::get_if<File>(&entry);
    return file != nullptr ? State{Kind::kFile, file->etag} : State{Kind::kFolder, {}};
  }
};

inline std::ostream& operator<<(std::ostream& out, const State& state) {
  if (state.kind == State::Kind::kFile) return out << "a file " << state.etag;
  return out << (state.kind == State::Kind::kFolder ? "a folder" : "absent");
}

/// All that a store ever held. Not thread-safe.
class Model {
 public:
  Model() { past_.push_back({kLongAgo, {}}); }

  void set(TrueTime now, const std::string& key, const std::string& etag) {
    auto keys = past_.back().keys;
    keys[key] = etag;
    past_.push_back({now, std::move(keys)});
  }
  void erase(TrueTime now, const std::string& key) {
    auto keys = past_.back().keys;
    keys.erase(key);
    past_.push_back({now, std::move(keys)});
  }
  /// Only what was asked of the store after `now` is an answer for `path`, or, where it ends in '/' or is empty, for all below
  /// it.
  void expire(TrueTime now, const std::string& path) { floors_[path] = now; }
  /// Single names that were expired are a matter of the process.
  void restarted() {
    std::erase_if(floors_, [](const auto& floor) { return !floor.first.empty() && floor.first.back() != '/'; });
  }

  /// The name was in this state since `from` (or since it was last declared expired). That there is an object and that a folder
  /// of the same name hides it are two things: each of them was so at some moment.
  [[nodiscard]] bool was(const std::string& path, const State& state, TrueTime from) const {
    for (const auto& [floor, at] : floors_) {
      const bool holds = floor == path || floor.empty() || (floor.back() == '/' && path.starts_with(floor));
      if (holds) from = std::max(from, at);
    }
    bool object = state.kind == State::Kind::kFolder;
    bool folder = false;
    for (auto moment = past_.rbegin(); moment != past_.rend(); ++moment) {
      const auto& keys = moment->keys;
      const auto it = keys.find(path);
      object = object || (state.kind == State::Kind::kAbsent ? it == keys.end() : it != keys.end() && it->second == state.etag);
      const auto below = keys.lower_bound(path + "/");
      const bool is_folder = below != keys.end() && below->first.starts_with(path + "/");
      folder = folder || is_folder == (state.kind == State::Kind::kFolder);
      if (object && folder) return true;
      if (moment->since <= from) return false;
    }
    return false;
  }
  [[nodiscard]] const std::map<std::string, std::string>& keys() const { return past_.back().keys; }

 private:
  struct Moment {
    TrueTime since;
    std::map<std::string, std::string> keys;
  };

  std::vector<Moment> past_;
  std::map<std::string, TrueTime> floors_;
};

/// What the kernel believes: answers with their validity, until a notice. Thread-safe.
class Kernel final : public Listener {
 public:
  /// How many notices came so far.
  [[nodiscard]] std::uint64_t notices() {
    MutexLock lock(mutex_);
    return notices_;
  }
  /// The answer to a question that was put after `notices`. One that was overtaken by a notice is not kept.
  void told(const std::string& path, const State& state, TrueTime until, std::uint64_t notices) {
    MutexLock lock(mutex_);
    if (notices != notices_) return;
    if (state.kind != State::Kind::kFolder) forget_below(path);
    held_[path] = {state, until};
  }
  /// A folder's dentry takes all below it along.
  void changed(const std::string& prefix, const std::string& name) override {
    MutexLock lock(mutex_);
    ++notices_;
    held_.erase(prefix + name);
    forget_below(prefix + name);
  }
  [[nodiscard]] std::optional<State> believes(const std::string& path, TrueTime now) {
    MutexLock lock(mutex_);
    const auto it = held_.find(path);
    if (it == held_.end() || it->second.until <= now) return std::nullopt;
    return it->second.state;
  }
  void clear() {
    MutexLock lock(mutex_);
    held_.clear();
  }

 private:
  struct Held {
    State state;
    TrueTime until = 0;
  };
  void forget_below(const std::string& path) REQUIRES(mutex_) {
    const std::string prefix = path + "/";
    for (auto it = held_.lower_bound(prefix); it != held_.end() && it->first.starts_with(prefix);) it = held_.erase(it);
  }
  Mutex mutex_{LockRank::kLeaf, "kernel of a history"};
  std::map<std::string, Held> held_ GUARDED_BY(mutex_);
  std::uint64_t notices_ GUARDED_BY(mutex_) = 0;
};

/// Identities follow versions: checked against all that was seen before. Not thread-safe.
class Identities {
 public:
  /// Empty when all is well.
  [[nodiscard]] std::string check(const File& file) {
    const std::string version = file.key + ' ' + file.etag;
    const auto [node, fresh_node] = nodes_.try_emplace({file.number, file.generation}, version);
    if (node->second != version) return "one node for '" + node->second + "' and '" + version + "'";
    const auto [ino, fresh_ino] = inos_.try_emplace(version, file.ino);
    if (ino->second != file.ino) return "another st_ino for the same version '" + version + "'";
    auto& newest = generations_[file.number];
    if (file.generation < newest) return "generation of '" + file.key + "' went back";
    newest = file.generation;
    keys_[file.number] = file.key;
    return {};
  }
  [[nodiscard]] const std::map<Number, std::string>& numbers() const { return keys_; }

 private:
  std::map<std::pair<Number, std::uint32_t>, std::string> nodes_;
  std::map<std::string, std::uint64_t> inos_;
  std::map<Number, std::uint32_t> generations_;
  std::map<Number, std::string> keys_;
};

}  // namespace thermo::catalog::test
