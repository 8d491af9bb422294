#include "vfs/dir_handle.h"

#include <algorithm>
#include <utility>

namespace thermo::vfs {

MonoTime expiry(const Clock& clock, Nanos valid) {
  const MonoTime now = clock.now();
  return valid >= MonoTime::max() - now ? MonoTime::max() : now + valid;
}

void DirHandle::rewind() {
  MutexLock lock(mutex_);
  before_.assign(1, std::string());
  chunk_ = nullptr;
  told_ = {};
}

DirHandle::ChunkPtr DirHandle::held(std::uint64_t index, std::size_t offset) {
  MutexLock lock(mutex_);
  if (chunk_ == nullptr || chunk_->index != index) return nullptr;
  return offset < chunk_->items.size() || chunk_->ended || chunk_->items.size() >= kChunk ? chunk_ : nullptr;
}

DirHandle::Start DirHandle::start_for(std::uint64_t index) {
  MutexLock lock(mutex_);
  if (chunk_ != nullptr && chunk_->index == index && !chunk_->items.empty())
    return {index, chunk_->items.back().name, chunk_->items, told_};
  const std::uint64_t known = std::min<std::uint64_t>(index, before_.size() - 1);
  return {known, before_[static_cast<std::size_t>(known)], {}, known == 0 ? catalog::Told{} : told_};
}

Result<DirHandle::ChunkPtr> DirHandle::chunk_at(const RequestContext& ctx, catalog::View& view, NodeTable& nodes,
                                                const Clock& clock, std::uint64_t ordinal) {
  const std::uint64_t wanted = ordinal / kChunk;
  if (auto chunk = held(wanted, ordinal % kChunk)) return chunk;
  // A position that this handle never passed (it was opened before a restart) is reached from the last one known.
  for (;;) {
    Start start = start_for(wanted);
    auto chunk = std::make_shared<Chunk>();
    chunk->index = start.index;
    chunk->items = std::move(start.items);
    const std::size_t room = kChunk - chunk->items.size();
    std::vector<std::pair<std::string, std::shared_ptr<NodeTable::Known>>> fresh;
    catalog::Told told = start.told;
    const auto listed = view.list(
        ctx, prefix, start.after,
        [&](const catalog::ListedName& found) {
          fresh.emplace_back(found.name, std::make_shared<NodeTable::Known>(NodeTable::Known{*found.entry, {}}));
          return fresh.size() < room;
        },
        &told);
    if (!listed && fresh.empty()) return fail(listed.error());
    chunk->ended = listed.has_value() && fresh.size() < room;
    const MonoTime expires = expiry(clock, told.valid);
    for (auto& [name, known] : fresh) {
      known->expires = expires;
      nodes.remember(known, false);
      chunk->items.push_back({std::move(name), std::move(known)});
    }
    {
      MutexLock lock(mutex_);
      chunk_ = chunk;
      told_ = told;
      if (chunk->items.size() >= kChunk && before_.size() == start.index + 1) before_.push_back(chunk->items.back().name);
    }
    if (chunk->ended || chunk->index == wanted) return chunk;
    if (!listed) return fail(listed.error());
  }
}

}  // namespace thermo::vfs
