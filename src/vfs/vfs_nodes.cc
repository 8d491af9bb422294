// Names and nodes: lookup, getattr, paths.

#include <algorithm>
#include <utility>

#include "vfs/attributes.h"
#include "vfs/vfs_impl.h"

namespace thermo::vfs {
namespace {

tl::unexpected<Error> stale(NodeId node) {
  return fail(ErrorCode::kStale, "node " + std::to_string(node_number(node)) + " generation " +
                                     std::to_string(node_generation(node)) + " is not current: look the name up again");
}

}  // namespace

NodeId VfsImpl::node_of(const catalog::Entry& entry) const {
  const auto* folder = std::get_if<catalog::Folder>(&entry);
  if (folder != nullptr && folder->prefix == options_.root_prefix) return kRootNode;
  return entry_node(entry);
}

Nanos VfsImpl::left(MonoTime expires) const {
  if (expires == MonoTime::max()) return Nanos::max();
  return std::max(Nanos{0}, Nanos(expires - options_.clock->now()));
}

Entry VfsImpl::shown(const NodeTable::Known& known) const {
  return {node_of(known.entry), make_attr(known.entry, options_), left(known.expires)};
}

VfsImpl::KnownPtr VfsImpl::remember(const catalog::Found& found) {
  auto known = std::make_shared<const NodeTable::Known>(NodeTable::Known{*found.entry, expiry(*options_.clock, found.valid)});
  nodes_.remember(known, true);
  return known;
}

Result<VfsImpl::KnownPtr> VfsImpl::root(const RequestContext& ctx) {
  {
    MutexLock lock(root_mutex_);
    if (root_ != nullptr) return root_;
  }
  TRY_ASSIGN(auto folder, view_->folder(ctx, options_.root_prefix));
  auto known = std::make_shared<const NodeTable::Known>(NodeTable::Known{std::move(folder), MonoTime::max()});
  MutexLock lock(root_mutex_);
  if (root_ == nullptr) root_ = std::move(known);
  return root_;
}

Result<VfsImpl::KnownPtr> VfsImpl::look_again(const RequestContext& ctx, const std::string& key) {
  const auto [prefix, name] = split_key(key);
  TRY_ASSIGN(auto found, view_->lookup(ctx, prefix, name));
  if (found.entry && entry_key(*found.entry) != key && !key.ends_with('/')) {
    // A folder of that name hides the object, or came in its place.
    TRY_ASSIGN(found, view_->lookup(ctx, prefix, std::string(kHiddenObject) + name));
  }
  if (!found.entry || entry_key(*found.entry) != key) return KnownPtr();
  return remember(found);
}

Result<VfsImpl::KnownPtr> VfsImpl::known(const RequestContext& ctx, NodeId node) {
  if (node == kRootNode) return root(ctx);
  const catalog::Number number = node_number(node);
  if (number < catalog::kFirstNumber) return stale(node);
  auto answer = nodes_.find(number);
  if (answer.suspect_key) {
    TRY_ASSIGN(answer.known, look_again(ctx, *answer.suspect_key));
    if (answer.known == nullptr) return stale(node);
  }
  if (answer.known == nullptr || node_of(answer.known->entry) < node) {
    TRY_ASSIGN(auto entry, view_->by_number(ctx, number));
    // How long it may be believed is not known: attributes are asked for by name (getattr), opening goes by number alone.
    auto fresh = std::make_shared<const NodeTable::Known>(NodeTable::Known{std::move(entry), options_.clock->now()});
    nodes_.remember(fresh, false);
    answer.known = std::move(fresh);
  }
  if (node_of(answer.known->entry) != node) return stale(node);
  return answer.known;
}

Result<VfsImpl::KnownPtr> VfsImpl::known_folder(const RequestContext& ctx, NodeId node) {
  TRY_ASSIGN(auto folder, known(ctx, node));
  if (!std::holds_alternative<catalog::Folder>(folder->entry)) {
    return fail(ErrorCode::kNotDirectory, "'" + entry_key(folder->entry) + "' is a file");
  }
  return folder;
}

Result<VfsImpl::KnownPtr> VfsImpl::parent_of(const RequestContext& ctx, const std::string& prefix) {
  if (prefix == options_.root_prefix) return root(ctx);
  const std::string parent = split_key(prefix).prefix;
  if (parent == options_.root_prefix) return root(ctx);
  if (auto found = nodes_.find_key(parent)) return found;
  TRY_ASSIGN(auto folder, view_->folder(ctx, parent));
  return std::make_shared<const NodeTable::Known>(NodeTable::Known{std::move(folder), options_.clock->now()});
}

Result<Entry> VfsImpl::lookup(const RequestContext& ctx, NodeId parent, std::string_view name) {
  TRY_ASSIGN(const auto folder, known_folder(ctx, parent));
  const std::string& prefix = entry_key(folder->entry);
  if (name == ".") return getattr(ctx, parent, 0);
  if (name == "..") {
    TRY_ASSIGN(const auto up, parent_of(ctx, prefix));
    return shown(*up);
  }
  TRY_ASSIGN(const auto found, view_->lookup(ctx, prefix, name));
  if (!found.entry) {
    Entry none;
    none.valid = found.valid;
    return none;
  }
  return shown(*remember(found));
}

Result<Entry> VfsImpl::getattr(const RequestContext& ctx, NodeId node, HandleId handle) {
  if (handle != 0) {
    if (const auto file = files_.find(handle); file != nullptr && file->node == node) {
      Entry entry{node, make_attr(file->file, options_), Nanos{0}};
      const auto now = nodes_.find(node_number(node)).known;
      if (now != nullptr && node_of(now->entry) == node) entry.valid = left(now->expires);
      return entry;
    }
  }
  auto current = current_of(ctx, node);
  if (current) return shown(**current);
  const ErrorCode code = current.error().code();
  if (code != ErrorCode::kStale && code != ErrorCode::kNotFound) return fail(std::move(current).error());
  // fstat() of a version that was replaced or deleted while open: the kernel asks without the handle.
  const auto open = files_.find_if([node](const OpenFile& file) { return file.node == node; });
  if (open == nullptr) return fail(std::move(current).error());
  return Entry{node, make_attr(open->file, options_), Nanos{0}};
}

Result<VfsImpl::KnownPtr> VfsImpl::current_of(const RequestContext& ctx, NodeId node) {
  TRY_ASSIGN(auto current, known(ctx, node));
  if (node != kRootNode && current->expires <= options_.clock->now()) {
    const std::string key = entry_key(current->entry);
    TRY_ASSIGN(current, look_again(ctx, key));
    if (current == nullptr || node_of(current->entry) != node) return stale(node);
  }
  return current;
}

std::string VfsImpl::path_of(NodeId node) {
  if (node == kRootNode) return {};
  const auto answer = nodes_.find(node_number(node));
  std::string key = answer.known != nullptr ? entry_key(answer.known->entry) : answer.suspect_key.value_or("");
  if (key.size() <= options_.root_prefix.size()) return "?";
  if (key.ends_with('/')) key.pop_back();
  return key.substr(options_.root_prefix.size());
}

Result<catalog::Entry> VfsImpl::resolve(const RequestContext& ctx, std::string_view path) {
  TRY_ASSIGN(const auto top, root(ctx));
  catalog::Entry entry = top->entry;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view name = path.substr(at, end - at);
    at = end + 1;
    if (name.empty() || name == ".") continue;
    const std::string so_far(path.substr(0, end));
    if (name == "..")
      return fail(ErrorCode::kInvalidArgument, "'" + so_far + "': '..' is not followed; name the path from the mount's root");
    if (std::holds_alternative<catalog::File>(entry))
      return fail(ErrorCode::kNotDirectory, "'" + so_far + "' goes through a file");
    auto found = view_->lookup(ctx, entry_key(entry), name);
    if (!found) return fail(found.error().within("'" + so_far + "'"));
    if (!found->entry) return fail(ErrorCode::kNotFound, "no such file or folder '" + so_far + "'");
    entry = remember(*found)->entry;
  }
  return entry;
}

}  // namespace thermo::vfs
