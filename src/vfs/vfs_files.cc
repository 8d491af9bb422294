// Files: open, read, extended attributes.

#include <fcntl.h>

#include <utility>

#include "base/log.h"
#include "base/rng.h"
#include "vfs/attributes.h"
#include "vfs/vfs_impl.h"

namespace thermo::vfs {
namespace {

// About 5 MB. Enough for what a few processes have in hand; the rest costs a database read.
constexpr std::size_t kRememberedNodes = 16384;

bool wants_to_write(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_TRUNC | O_CREAT)) != 0; }

}  // namespace

VfsImpl::VfsImpl(std::shared_ptr<catalog::View> view, cache::Cache& cache, MemoryBudget& memory, const Options& options)
    : view_(std::move(view)),
      cache_(cache),
      memory_(memory),
      options_(options),
      source_(std::make_shared<StoreSource>(view_)),
      handles_gauge_(options.metrics->gauge("thermocline_open_handles", "Open files and folders of a mount.",
                                            {{"mount", options.store_name}})),
      reopened_(options.metrics->counter("thermocline_handles_reopened_total",
                                         "Handles of an earlier process that were opened again.")),
      stale_reads_(
          options.metrics->counter("thermocline_stale_versions_total", "Open versions found replaced or deleted in the store.")),
      nodes_(kRememberedNodes),
      // Handles of an earlier process must not be taken for ours: ids start anywhere.
      next_handle_((Rng::from_os().next() >> 1) | 1),
      relay_(*view_, nodes_, options.root_prefix, *options.clock) {
  view_->set_listener(&relay_);
}

VfsImpl::~VfsImpl() {
  view_->set_listener(nullptr);
  relay_.stop();
}

cache::ObjectRef VfsImpl::object_ref(const catalog::File& file) const {
  return {file.version, view_->store().id(), file.key, file.etag, file.size};
}

Result<VfsImpl::OpenFilePtr> VfsImpl::open_file(const RequestContext& ctx, NodeId node, const catalog::File& file) {
  if (file.size > cache::kLargestObjectBytes) {
    return fail(ErrorCode::kNotSupported,
                "'" + file.key + "' has " + std::to_string(file.size) + " bytes; more than 1 PiB cannot be read");
  }
  auto open = std::make_shared<OpenFile>();
  open->node = node;
  open->file = file;
  open->reader = read::open_reader(ctx, cache_.open(object_ref(file), source_), file.key, options_.read, memory_);
  return open;
}

Result<HandleId> VfsImpl::open(const RequestContext& ctx, NodeId node, int flags) {
  if (wants_to_write(flags)) return fail(ErrorCode::kReadOnly, "this mount is read-only");
  TRY_ASSIGN(const auto current, known(ctx, node));
  const auto* file = std::get_if<catalog::File>(&current->entry);
  if (file == nullptr) return fail(ErrorCode::kIsDirectory, "'" + entry_key(current->entry) + "' is a folder");
  TRY_ASSIGN(auto opened, open_file(ctx, node, *file));
  const HandleId handle = next_handle();
  files_.insert(handle, std::move(opened));
  count_handles();
  return handle;
}

Result<VfsImpl::OpenFilePtr> VfsImpl::file_of(const RequestContext& ctx, NodeId node, HandleId handle) {
  if (auto file = files_.find(handle); file != nullptr && file->node == node) return file;
  TRY_ASSIGN(const auto current, known(ctx, node));
  const auto* file = std::get_if<catalog::File>(&current->entry);
  if (file == nullptr) return fail(ErrorCode::kIsDirectory, "'" + entry_key(current->entry) + "' is a folder");
  TRY_ASSIGN(auto opened, open_file(ctx, node, *file));
  reopened_.add();
  auto open = files_.insert(handle, std::move(opened), [node](const OpenFile& other) { return other.node == node; });
  count_handles();
  return open;
}

Error VfsImpl::version_gone(OpenFile& open, const Error& cause) {
  if (!open.reported_stale.exchange(true)) {
    stale_reads_.add();
    log::info("'{}' was replaced or deleted in the store while it was open ({}); readers open it again", open.file.key,
              cause.describe());
    view_->expire(open.file.key);
    nodes_.suspect(open.file);
    const auto [prefix, name] = split_key(open.file.key);
    relay_.invalidate(prefix, name);
    relay_.invalidate(prefix, std::string(kHiddenObject) + name);
  }
  return Error(ErrorCode::kStale, "'" + open.file.key + "' is no longer the version that was opened: open it again");
}

Result<cache::PageReply> VfsImpl::read(const RequestContext& ctx, NodeId node, HandleId handle, cache::ByteRange range,
                                       std::span<std::byte> scratch, bool retried) {
  TRY_ASSIGN(const auto open, file_of(ctx, node, handle));
  auto reply = open->reader->read(ctx, range, scratch, retried);
  if (reply) return reply;
  switch (reply.error().code()) {
    case ErrorCode::kPreconditionFailed:
    case ErrorCode::kNotFound:
    case ErrorCode::kStale: return fail(version_gone(*open, reply.error()));
    default: return reply;
  }
}

void VfsImpl::release(HandleId handle) {
  files_.erase(handle);
  count_handles();
}

StatFs VfsImpl::statfs() {
  // A bucket has no size and no end. Round figures that no tool overflows on.
  return {.total_bytes = std::uint64_t{1} << 50, .free_bytes = std::uint64_t{1} << 50, .files = 1'000'000'000};
}

Result<std::string> VfsImpl::get_xattr(const RequestContext& ctx, NodeId node, std::string_view name) {
  TRY_ASSIGN(const auto current, known(ctx, node));
  if (name == kXattrStore) return store_url(options_, entry_key(current->entry));
  if (const auto* file = std::get_if<catalog::File>(&current->entry)) {
    if (name == kXattrEtag) return file->etag;
    if (name == kXattrVersion) return file->version.hex();
    if (name == kXattrResidency) {
      TRY_ASSIGN(const auto residency, cache_.residency(ctx, object_ref(*file)));
      return std::to_string(residency.resident) + "/" + std::to_string(file->size);
    }
  } else {
    if (name == kXattrAdmin && node == kRootNode && !options_.admin_socket.empty()) return options_.admin_socket;
    if (name == kXattrSkipped) {
      const auto skipped = view_->skipped();
      if (skipped.count > 0) return std::to_string(skipped.count);
    }
  }
  return fail(ErrorCode::kNoData);
}

Result<std::vector<std::string>> VfsImpl::list_xattr(const RequestContext& ctx, NodeId node) {
  TRY_ASSIGN(const auto current, known(ctx, node));
  std::vector<std::string> names{std::string(kXattrStore)};
  if (std::holds_alternative<catalog::File>(current->entry)) {
    for (const auto name : {kXattrEtag, kXattrResidency, kXattrVersion}) names.emplace_back(name);
  } else {
    if (node == kRootNode && !options_.admin_socket.empty()) names.emplace_back(kXattrAdmin);
    if (view_->skipped().count > 0) names.emplace_back(kXattrSkipped);
  }
  return names;
}

std::unique_ptr<Vfs> make_vfs(std::shared_ptr<catalog::View> view, cache::Cache& cache, MemoryBudget& memory,
                              const Options& options) {
  return std::make_unique<VfsImpl>(std::move(view), cache, memory, options);
}

}  // namespace thermo::vfs
