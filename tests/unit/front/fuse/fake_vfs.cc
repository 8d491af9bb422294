#include "fake_vfs.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace thermo::fuse::testing {

FakeVfs::FakeVfs() {
  Node root;
  root.id = vfs::kRootNode;
  root.parent = vfs::kRootNode;
  root.dir = true;
  root.ino = 1;
  nodes_[root.id] = root;
}

vfs::NodeId FakeVfs::add(vfs::NodeId parent, const std::string& name, Node node) {
  node.parent = parent;
  const auto id = node.id;
  nodes_[id] = std::move(node);
  nodes_.at(parent).children[name] = id;
  return id;
}

vfs::NodeId FakeVfs::add_dir(vfs::NodeId parent, const std::string& name) {
  MutexLock lock(mutex_);
  Node node;
  node.id = next_number_++ << vfs::kGenerationBits;
  node.dir = true;
  node.ino = 100'000 + node.id;
  return add(parent, name, std::move(node));
}

vfs::NodeId FakeVfs::add_file(vfs::NodeId parent, const std::string& name, std::string content) {
  MutexLock lock(mutex_);
  Node node;
  node.id = (next_number_++ << vfs::kGenerationBits) | 1;
  node.ino = 4242 + node.id;
  node.content = std::make_shared<const std::string>(std::move(content));
  return add(parent, name, std::move(node));
}

vfs::NodeId FakeVfs::replace(vfs::NodeId parent, const std::string& name, std::string content) {
  MutexLock lock(mutex_);
  Node& old = nodes_.at(nodes_.at(parent).children.at(name));
  old.stale = true;
  Node node;
  node.id = old.id + 1;
  node.ino = old.ino;
  node.content = std::make_shared<const std::string>(std::move(content));
  return add(parent, name, std::move(node));
}

void FakeVfs::tell_kernel(vfs::NodeId parent, const std::string& name) {
  MutexLock lock(mutex_);
  if (kernel_ != nullptr) kernel_->invalidate_entry(parent, name);
}

void FakeVfs::set_kernel_cache(vfs::KernelCache* kernel) {
  MutexLock lock(mutex_);
  kernel_ = kernel;
}

void FakeVfs::block(vfs::NodeId node, ErrorCode first) {
  MutexLock lock(mutex_);
  waits_[node] = {Wait::kBlocked, first};
}

void FakeVfs::slow(vfs::NodeId node, ErrorCode first) {
  MutexLock lock(mutex_);
  waits_[node] = {Wait::kSlow, first};
}

void FakeVfs::release_blocked(vfs::NodeId node) {
  MutexLock lock(mutex_);
  waits_.erase(node);
}

Result<void> FakeVfs::wait_for(const RequestContext& ctx, vfs::NodeId node) {
  bool counted = false;
  while (true) {
    {
      MutexLock lock(mutex_);
      const auto at = waits_.find(node);
      if (at != waits_.end() && !ctx.may_wait) return fail(at->second.first);
      if (at == waits_.end() || at->second.how == Wait::kSlow) break;
    }
    if (!counted) ++waiting;
    counted = true;
    if (const auto checked = ctx.check(Clock::system()); !checked && !deaf) {
      if (checked.error().code() == ErrorCode::kCancelled) ++cancelled;
      else ++timed_out;
      --waiting;
      return checked;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (counted) --waiting;
  return {};
}

Result<FakeVfs::Node*> FakeVfs::find(vfs::NodeId id) {
  const auto at = nodes_.find(id);
  if (at == nodes_.end()) return fail(ErrorCode::kStale);
  return &at->second;
}

vfs::Entry FakeVfs::entry_of(const Node& node) const {
  vfs::Entry entry;
  entry.node = node.id;
  entry.valid = Nanos(valid_ns.load());
  entry.attr.ino = node.ino;
  entry.attr.mode = node.dir ? S_IFDIR | 0755u : S_IFREG | 0644u;
  entry.attr.nlink = node.dir ? 2 : 1;
  entry.attr.size = node.dir ? 0 : node.content->size();
  entry.attr.blocks = (entry.attr.size + 511) / 512;
  entry.attr.mtime = 1'650'000'000'123'456'789;
  return entry;
}

Result<vfs::Entry> FakeVfs::lookup(const RequestContext& ctx, vfs::NodeId parent, std::string_view name) {
  TRY(wait_for(ctx, parent));
  ++lookups;
  MutexLock lock(mutex_);
  TRY_ASSIGN(Node * folder, find(parent));
  if (name.size() > catalog::kMaxNameBytes) return fail(ErrorCode::kNameTooLong);
  if (name == "denied") return fail(ErrorCode::kAccessDenied);
  if (name == "throttled") return fail(ErrorCode::kThrottled);
  const auto at = folder->children.find(std::string(name));
  if (at == folder->children.end()) {
    vfs::Entry negative;
    negative.valid = Nanos(valid_ns.load());
    return negative;
  }
  return entry_of(nodes_.at(at->second));
}

Result<vfs::Entry> FakeVfs::getattr(const RequestContext&, vfs::NodeId node, vfs::HandleId handle) {
  MutexLock lock(mutex_);
  TRY_ASSIGN(Node * found, find(node));
  if (found->stale && handle == 0) return fail(ErrorCode::kStale);
  return entry_of(*found);
}

Result<vfs::HandleId> FakeVfs::open(const RequestContext&, vfs::NodeId node, int flags) {
  MutexLock lock(mutex_);
  TRY_ASSIGN(Node * found, find(node));
  if (found->stale) return fail(ErrorCode::kStale);
  if (found->dir) return fail(ErrorCode::kIsDirectory);
  if ((flags & O_ACCMODE) != O_RDONLY) return fail(ErrorCode::kReadOnly);
  ++opens;
  handles_[next_handle_] = node;
  return next_handle_++;
}

Result<cache::PageReply> FakeVfs::read(const RequestContext& ctx, vfs::NodeId node, vfs::HandleId handle, cache::ByteRange range,
                                       std::span<std::byte> scratch, bool again) {
  if (scratch.size() < range.length) std::abort();
  if (again) ++retried;
  TRY(wait_for(ctx, node));
  ++reads;
  std::shared_ptr<const std::string> content;
  {
    MutexLock lock(mutex_);
    const auto at = handles_.find(handle);
    if (at == handles_.end() || at->second != node) return fail(ErrorCode::kStale);
    content = nodes_.at(node).content;
  }
  if (!content) return fail(ErrorCode::kIsDirectory);
  cache::PageReply reply;
  std::uint64_t at = std::min<std::uint64_t>(range.offset, content->size());
  const std::uint64_t end = std::min<std::uint64_t>(range.end(), content->size());
  const std::uint64_t step = slices_of == 0 ? end - at : slices_of.load();
  while (at < end) {
    const auto n = std::min(step, end - at);
    reply.slices.push_back({content, std::as_bytes(std::span(content->data() + at, n))});
    at += n;
  }
  return reply;
}

void FakeVfs::release(vfs::HandleId handle) {
  MutexLock lock(mutex_);
  releases += static_cast<int>(handles_.erase(handle));
}

Result<vfs::HandleId> FakeVfs::open_dir(const RequestContext&, vfs::NodeId node) {
  MutexLock lock(mutex_);
  TRY_ASSIGN(Node * found, find(node));
  if (!found->dir) return fail(ErrorCode::kNotDirectory);
  ++opens;
  handles_[next_handle_] = node;
  return next_handle_++;
}

Result<void> FakeVfs::read_dir(const RequestContext& ctx, vfs::NodeId node, vfs::HandleId, std::uint64_t cookie,
                               const std::function<bool(const vfs::DirEntry&)>& visit) {
  TRY(wait_for(ctx, node));
  ++dir_reads;
  std::vector<std::pair<std::string, vfs::Entry>> all;
  {
    MutexLock lock(mutex_);
    TRY_ASSIGN(Node * folder, find(node));
    all.emplace_back(".", entry_of(*folder));
    all.emplace_back("..", entry_of(nodes_.at(folder->parent)));
    for (const auto& [name, child] : folder->children) all.emplace_back(name, entry_of(nodes_.at(child)));
  }
  for (std::uint64_t i = cookie; i < all.size(); ++i) {
    if (!visit({all[i].first, i + 1, all[i].second})) break;
  }
  return {};
}

void FakeVfs::release_dir(vfs::HandleId handle) { release(handle); }

Result<std::string> FakeVfs::get_xattr(const RequestContext&, vfs::NodeId node, std::string_view name) {
  MutexLock lock(mutex_);
  TRY_ASSIGN(Node * found, find(node));
  if (name == "user.thermo.store") return "s3://fake";
  if (name == "user.thermo.etag" && !found->dir) return "\"e" + std::to_string(found->id) + "\"";
  return fail(ErrorCode::kNoData);
}

Result<std::vector<std::string>> FakeVfs::list_xattr(const RequestContext&, vfs::NodeId node) {
  MutexLock lock(mutex_);
  TRY_ASSIGN(Node * found, find(node));
  if (found->dir) return std::vector<std::string>{"user.thermo.store"};
  return std::vector<std::string>{"user.thermo.etag", "user.thermo.store"};
}

Result<catalog::Entry> FakeVfs::resolve(const RequestContext&, std::string_view) { return fail(ErrorCode::kNotSupported); }
cache::ObjectRef FakeVfs::object_ref(const catalog::File&) const { return {}; }
catalog::View& FakeVfs::view() { std::abort(); }

}  // namespace thermo::fuse::testing
