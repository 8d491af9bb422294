#include "app/tree_walk.h"

namespace thermo::app {
namespace {

constexpr std::size_t kBatch = 1000;

}  // namespace

Result<void> list_folder(const RequestContext& ctx, vfs::Vfs& vfs, const std::string& prefix,
                         const std::function<Result<void>(std::vector<Named>&)>& visit) {
  std::string after;
  catalog::Told told;
  for (;;) {
    std::vector<Named> batch;
    const auto take = [&](const catalog::ListedName& listed) {
      batch.push_back({std::string(listed.name), *listed.entry});
      return batch.size() < kBatch;
    };
    TRY(vfs.view().list(ctx, prefix, after, take, &told));
    if (batch.empty()) return {};
    const bool last = batch.size() < kBatch;
    after = batch.back().name;
    TRY(visit(batch));
    if (last) return {};
  }
}

Result<void> walk_files(const RequestContext& ctx, vfs::Vfs& vfs, const catalog::Entry& entry,
                        const std::function<Result<void>(const catalog::File&)>& visit) {
  if (const auto* file = std::get_if<catalog::File>(&entry)) return visit(*file);
  // A stack of folders still to be listed: depth first, so that it stays as short as one path has siblings.
  std::vector<std::string> pending{std::get<catalog::Folder>(entry).prefix};
  while (!pending.empty()) {
    const std::string prefix = std::move(pending.back());
    pending.pop_back();
    std::vector<std::string> folders;
    const auto take = [&](std::vector<Named>& batch) -> Result<void> {
      for (const auto& named : batch) {
        if (const auto* file = std::get_if<catalog::File>(&named.entry)) {
          TRY(visit(*file));
        } else {
          folders.push_back(std::get<catalog::Folder>(named.entry).prefix);
        }
      }
      return {};
    };
    const auto listed = list_folder(ctx, vfs, prefix, take);
    // Removed while we walked: nothing below it is left to visit.
    if (!listed && listed.error().code() != ErrorCode::kNotFound) return fail(listed.error());
    pending.insert(pending.end(), folders.rbegin(), folders.rend());
  }
  return {};
}

}  // namespace thermo::app
