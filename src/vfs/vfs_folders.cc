// Folders: positions and entries.

#include <utility>

#include "vfs/vfs_impl.h"

namespace thermo::vfs {
namespace {

// Positions as the kernel keeps them: 0 = start, 1 = after ".", 2 = after "..", n + 3 = after the entry with ordinal n.
constexpr std::uint64_t kAfterDot = 1;
constexpr std::uint64_t kAfterDotDot = 2;

}  // namespace

Result<HandleId> VfsImpl::open_dir(const RequestContext& ctx, NodeId node) {
  TRY_ASSIGN(const auto folder, known_folder(ctx, node));
  const HandleId handle = next_handle();
  dirs_.insert(handle, std::make_shared<DirHandle>(node, entry_key(folder->entry)));
  count_handles();
  return handle;
}

void VfsImpl::release_dir(HandleId handle) {
  dirs_.erase(handle);
  count_handles();
}

Result<VfsImpl::DirPtr> VfsImpl::dir_of(const RequestContext& ctx, NodeId node, HandleId handle) {
  if (auto dir = dirs_.find(handle); dir != nullptr && dir->node == node) return dir;
  TRY_ASSIGN(const auto folder, known_folder(ctx, node));
  reopened_.add();
  auto dir = dirs_.insert(handle, std::make_shared<DirHandle>(node, entry_key(folder->entry)),
                          [node](const DirHandle& other) { return other.node == node; });
  count_handles();
  return dir;
}

Result<void> VfsImpl::read_dir(const RequestContext& ctx, NodeId node, HandleId handle, std::uint64_t cookie,
                               const std::function<bool(const DirEntry&)>& visit) {
  TRY_ASSIGN(const auto dir, dir_of(ctx, node, handle));
  if (cookie == 0) {
    dir->rewind();
    // Before the first entry is handed out: a folder that cannot be listed is an error, not a folder with two dots in it.
    TRY(dir->chunk_at(ctx, *view_, nodes_, *options_.clock, 0));
    TRY_ASSIGN(const auto self, known(ctx, node));
    if (!visit({".", kAfterDot, shown(*self)})) return {};
  }
  if (cookie <= kAfterDot) {
    TRY_ASSIGN(const auto up, parent_of(ctx, dir->prefix));
    if (!visit({"..", kAfterDotDot, shown(*up)})) return {};
  }
  bool any = cookie <= kAfterDot;
  for (std::uint64_t ordinal = cookie <= kAfterDotDot ? 0 : cookie - kAfterDotDot;;) {
    auto chunk = dir->chunk_at(ctx, *view_, nodes_, *options_.clock, ordinal);
    if (!chunk) {
      // What was handed out counts; the kernel asks again from there and gets the error, if it is one still.
      if (any) return {};
      return fail(chunk.error());
    }
    if ((*chunk)->index != ordinal / DirHandle::kChunk) return {};  // the folder ended before
    const auto& items = (*chunk)->items;
    std::size_t at = static_cast<std::size_t>(ordinal % DirHandle::kChunk);
    if (at >= items.size()) return {};
    for (; at < items.size(); ++at, ++ordinal) {
      if (!visit({items[at].name, ordinal + kAfterDotDot + 1, shown(*items[at].known)})) return {};
      any = true;
    }
    if ((*chunk)->ended) return {};
  }
}

}  // namespace thermo::vfs
