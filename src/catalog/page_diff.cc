// Applier::page: a page of a listing against what was known of its stretch of keys.

#include <algorithm>
#include <set>

#include "catalog/change_set.h"
#include "catalog/page_order.h"

namespace thermo::catalog {
namespace {

/// What a page holds, as far as it can be shown.
struct PageContent {
  std::vector<const store::ObjectInfo*> files;  // in key order
  std::vector<std::string> folders;             // in key order, all levels that the page names
  std::vector<std::string_view> hidden;         // keys and groups that cannot be names
  bool anything = false;
};

bool covers(const Coverage& coverage, std::string_view key) {
  return (coverage.after.empty() || key > coverage.after) && (coverage.until.empty() || key <= coverage.until);
}

/// The whole of `folder` lies in the stretch, so that what the page lacks of it is not there.
bool covers_whole(const Coverage& coverage, std::string_view folder) {
  return (coverage.after.empty() || coverage.after < folder) && (coverage.until.empty() || coverage.until >= prefix_end(folder));
}

PageContent read_page(const Coverage& coverage, const store::ListPage& page) {
  PageContent content;
  const std::size_t base = coverage.prefix.size();
  std::string_view previous;
  for (const auto& object : page.objects) {
    content.anything = true;
    if (!covers(coverage, object.key)) continue;
    const std::string_view key = object.key;
    const auto parsed = parse_key(key, base);
    if (parsed.shape == KeyShape::kHidden) content.hidden.push_back(key);
    if (parsed.shape == KeyShape::kFile) content.files.push_back(&object);
    if (!coverage.deep) continue;
    for (auto slash = key.find('/', base); slash < parsed.folders_end; slash = key.find('/', slash + 1)) {
      const auto folder = key.substr(0, slash + 1);
      if (!previous.starts_with(folder)) content.folders.emplace_back(folder);
    }
    // Only as far as its folders count: "a/../x" names the folder "a/" and nothing below.
    previous = key.substr(0, parsed.folders_end);
  }
  for (const auto& group : page.prefixes) {
    content.anything = true;
    if (!covers(coverage, group)) continue;
    if (parse_key(group, base).shape == KeyShape::kHidden) content.hidden.push_back(group);
    else content.folders.push_back(group);
  }
  return content;
}

}  // namespace

/// One page inside the writer's turn.
class PageDiff {
 public:
  PageDiff(Applier& applier, ChangeSet& changes, const Coverage& coverage, const PageContent& content)
      : knowledge_(applier.knowledge_),
        stamps_(applier.shared_.stamps),
        vouching_(applier.vouching_),
        changes_(changes),
        coverage_(coverage),
        content_(content) {}

  Result<void> run() {
    TRY(diff_folders());
    if (overtaken_) return {};
    TRY(diff_files());
    return seal_continued();
  }
  /// Nothing of the page may be written down.
  [[nodiscard]] bool overtaken() const { return overtaken_; }

 private:
  [[nodiscard]] std::string from() const {
    return coverage_.after.empty() ? coverage_.prefix : coverage_.after + std::string(1, '\0');
  }
  [[nodiscard]] bool past_end(std::string_view key) const {
    return !key.starts_with(coverage_.prefix) || (!coverage_.until.empty() && key > coverage_.until);
  }
  /// Told by a request that began later than this one: what we hold of it is older.
  [[nodiscard]] bool is_newer(std::string_view key) const {
    return is_direct_newer(key) ||
           std::any_of(newer_.begin(), newer_.end(), [&](const std::string& folder) { return key.starts_with(folder); });
  }
  /// By a listing of its folder, which knows no more than the names directly in it.
  [[nodiscard]] bool is_direct_newer(std::string_view path) const {
    if (path.ends_with('/')) path.remove_suffix(1);
    return direct_newer_.contains(parent_prefix(path));
  }
  void note_newer(const std::string& folder, const FolderRecord& record) {
    if (record.sealed_at > coverage_.started) newer_.push_back(folder);
    else if (record.listed_at > coverage_.started) direct_newer_.insert(folder);
  }

  Result<void> diff_folders() {
    auto next = content_.folders.begin();
    Result<void> outcome;
    TRY(knowledge_.kv().scan(folder_key(knowledge_.store(), from()),
                             [&](std::string_view db_key, std::string_view value, io::KvStore::Cursor& cursor) {
                               if (db_key.front() != 'f' || read_be32(db_key.substr(1)) != knowledge_.store()) return false;
                               const std::string_view folder = db_key.substr(kStoreHeader);
                               if (past_end(folder)) return false;
                               if (folder.size() == coverage_.prefix.size()) return true;
                               if (!coverage_.deep) {
                                 const auto slash = folder.find('/', coverage_.prefix.size());
                                 if (slash + 1 != folder.size()) {
                                   cursor.seek = folder_key(knowledge_.store(), prefix_end(folder.substr(0, slash + 1)));
                                   return true;
                                 }
                               }
                               const auto record = decode_folder(value);
                               if (!record) {
                                 outcome = fail(record.error());
                                 return false;
                               }
                               while (next != content_.folders.end() && *next < folder) {
                                 outcome = found_folder(*next++, std::nullopt);
                                 if (!outcome) return false;
                               }
                               if (next != content_.folders.end() && *next == folder) {
                                 outcome = found_folder(*next++, *record);
                               } else {
                                 outcome = lost_folder(std::string(folder), *record);
                               }
                               return outcome.has_value();
                             }));
    TRY(outcome);
    while (next != content_.folders.end()) TRY(found_folder(*next++, std::nullopt));
    return {};
  }

  Result<void> found_folder(const std::string& folder, const std::optional<FolderRecord>& known) {
    FolderRecord record;
    if (known) note_newer(folder, *known);
    if (known && known->exists()) {
      record = *known;
    } else if (is_direct_newer(folder)) {
      newer_.push_back(folder);  // gone since, and all below it
      return {};
    } else {
      TRY_ASSIGN(record, changes_.ensure_folder(folder, coverage_.started));
    }
    if (!coverage_.deep || coverage_.whole()) return {};
    const bool whole = covers_whole(coverage_, folder);
    const bool seal = whole && !covers_whole_parent(folder);
    if (seal) record.sealed_at = std::max(record.sealed_at, coverage_.started);
    if (!whole) record.seen_at = std::max(record.seen_at, coverage_.started);
    if (seal || !whole) changes_.put_folder(folder, record);
    return {};
  }

  /// The seal of the highest folder holds for all below it.
  [[nodiscard]] bool covers_whole_parent(std::string_view folder) const {
    const auto parent = parent_prefix(folder);
    return parent.size() > coverage_.prefix.size() && covers_whole(coverage_, parent);
  }

  Result<void> lost_folder(const std::string& folder, const FolderRecord& record) {
    note_newer(folder, record);
    // It exists for somebody who asked later. What he does not know is what was below it before: that goes by its own keys.
    if (coverage_.deep && (ChangeSet::newer(record, coverage_.started) || is_direct_newer(folder))) return {};
    if (ChangeSet::newer(record, coverage_.started)) {
      newer_.push_back(folder);
      return {};
    }
    // Somebody who asked later is being told of it: it can neither be removed nor vouched for.
    overtaken_ = overtaken_ || vouching_.overtakes(folder, true, coverage_.started);
    if (overtaken_) return {};
    if (!coverage_.deep) return changes_.remove_subtree(folder, coverage_.started);
    if (!covers_whole(coverage_, folder)) return {};
    doubt(std::string_view(folder).substr(0, folder.size() - 1));
    changes_.remove_folder(folder, record);  // its files go by their own keys
    return {};
  }

  /// Of a store that lists by directories it may come later: whoever asks for it, or for its folder, has to ask the store.
  void doubt(std::string_view path) {
    if (is_in_doubt(coverage_, path)) knowledge_.floors().expire(path, stamps_.next());
  }

  /// The highest folder that began on a page before and ended on this one.
  Result<void> seal_continued() {
    if (coverage_.continues_since == 0) return {};
    const std::string& after = coverage_.after;
    for (auto slash = after.find('/', coverage_.prefix.size()); slash != std::string::npos; slash = after.find('/', slash + 1)) {
      const std::string folder = after.substr(0, slash + 1);
      if (!coverage_.until.empty() && coverage_.until < prefix_end(folder)) continue;
      TRY_ASSIGN(auto record, changes_.folder(folder));
      if (!record) return {};
      record->sealed_at = std::max(record->sealed_at, coverage_.continues_since);
      changes_.put_folder(folder, *record);
      return {};
    }
    return {};
  }

  /// Keys such as "q-a" sort between "q" and "q/": the page may end before it tells of the folder.
  [[nodiscard]] ChangeSet::Look look(std::string_view key) const {
    const std::string folder = std::string(key) + "/";
    const bool told = coverage_.until.empty() || coverage_.until >= (coverage_.deep ? prefix_end(folder) : folder);
    return {coverage_.started, told && !std::binary_search(content_.folders.begin(), content_.folders.end(), folder)};
  }

  Result<void> diff_files() {
    auto next = content_.files.begin();
    Result<void> outcome;
    const auto add_next = [&]() -> Result<void> {
      const store::ObjectInfo& info = **next++;
      return is_newer(info.key) ? Result<void>() : changes_.add_file(info, look(info.key));
    };
    TRY(knowledge_.kv().scan(file_key(knowledge_.store(), from()),
                             [&](std::string_view db_key, std::string_view value, io::KvStore::Cursor& cursor) {
                               if (db_key.front() != 'k' || read_be32(db_key.substr(1)) != knowledge_.store()) return false;
                               const std::string_view key = db_key.substr(kStoreHeader);
                               if (past_end(key)) return false;
                               if (!coverage_.deep) {
                                 const auto slash = key.find('/', coverage_.prefix.size());
                                 if (slash != std::string_view::npos) {
                                   cursor.seek = file_key(knowledge_.store(), prefix_end(key.substr(0, slash + 1)));
                                   return true;
                                 }
                               }
                               const auto record = decode_file(value);
                               if (!record) {
                                 outcome = fail(record.error());
                                 return false;
                               }
                               while (outcome && next != content_.files.end() && (*next)->key < key) outcome = add_next();
                               if (!outcome) return false;
                               const bool listed = next != content_.files.end() && (*next)->key == key;
                               const bool keep = record->checked_at > coverage_.started || is_newer(key);
                               if (listed && !keep) outcome = changes_.update_file(**next, *record, look(key), /*note=*/false);
                               if (!listed && !keep) {
                                 doubt(key);
                                 outcome = changes_.remove_file(key, *record);
                               }
                               if (listed) ++next;
                               return outcome.has_value();
                             }));
    TRY(outcome);
    while (next != content_.files.end()) TRY(add_next());
    return {};
  }

  Knowledge& knowledge_;
  Stamps& stamps_;
  const Vouching& vouching_;
  ChangeSet& changes_;
  const Coverage& coverage_;
  const PageContent& content_;
  bool overtaken_ = false;
  std::vector<std::string> newer_;                   // folders of which all is newer
  std::set<std::string, std::less<>> direct_newer_;  // of which the names directly in them are
};

Result<Applier::Outcome> Applier::page(const RequestContext& ctx, const Coverage& coverage, const store::ListPage& page,
                                       const std::optional<Completion>& completion) {
  TRY(check_order(coverage, page));
  const PageContent content = read_page(coverage, page);
  for (const auto key : content.hidden) note_skipped(key);

  TRY(shared_.turn.enter(ctx, shared_.clock));
  Outcome outcome;
  const auto apply = [&]() -> Result<void> {
    if (coverage.deep && !coverage.whole() && unordered()) return fail(unordered_error());
    ChangeSet changes(knowledge_, shared_);
    const auto finish = [&]() -> Result<void> {
      TRY(changes.commit());
      outcome.notices = std::move(changes.notices());
      return {};
    };
    TRY_ASSIGN(const auto newest, knowledge_.listing_since(coverage.prefix, {}, /*may_wait=*/true));
    // Or the folder above was listed later, and without it.
    const auto known = changes.folder(coverage.prefix);
    if (!known) return fail(known.error());
    const bool gone = !coverage.prefix.empty() && !knowledge_.is_root(coverage.prefix) && !(*known && (*known)->exists());
    WallNanos above = 0;
    if (gone) {
      TRY_ASSIGN(above, knowledge_.listing_since(parent_prefix(folder_path(coverage.prefix)), {}, /*may_wait=*/true));
    }
    outcome.overtaken =
        std::max(newest, above) > coverage.started || vouching_.overtakes(coverage.prefix, coverage.deep, coverage.started);
    if (outcome.overtaken) return {};
    outcome.nothing_there = coverage.whole() && !content.anything;
    if (outcome.nothing_there && !knowledge_.is_root(coverage.prefix)) {
      TRY(changes.remove_subtree(coverage.prefix, coverage.started));
      return finish();
    }
    // The root of a mount is listed even where there is nothing.
    TRY_ASSIGN(auto record, changes.ensure_folder(coverage.prefix, outcome.nothing_there ? 0 : coverage.started));
    PageDiff diff(*this, changes, coverage, content);
    TRY(diff.run());
    outcome.overtaken = diff.overtaken();
    if (outcome.overtaken) return {};
    if (completion) {
      WallNanos& told = coverage.deep ? record.sealed_at : record.listed_at;
      told = std::max(told, completion->since);
      if (!outcome.nothing_there) {
        record.seen_at = std::max(record.seen_at, completion->since);
      } else if (record.seen_at <= coverage.started) {
        changes.remove_folder(coverage.prefix, record);
        record.seen_at = 0;
      }
      if (completion->pages != 0) record.pages = completion->pages;
      changes.put_folder(coverage.prefix, record);
    }
    return finish();
  };
  const auto applied = apply();
  shared_.turn.leave();
  TRY(applied);
  if (completion) knowledge_.floors().satisfied_listing(coverage.prefix, completion->since);
  return outcome;
}

}  // namespace thermo::catalog
