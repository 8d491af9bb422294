#include "front/fuse/handlers.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "front/fuse/encode.h"

namespace thermo::fuse {
namespace {

constexpr std::uint32_t kNoFlushSince = 35;
constexpr std::size_t kMaxAnswer = 64u << 20;  // far above what is negotiated; bounds what a broken frame can ask for

Result<void> check_range(std::uint64_t offset, std::uint64_t size) {
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (size <= kMaxAnswer && offset <= kLargest - size) return {};
  return fail(ErrorCode::kInvalidArgument,
              "read of " + std::to_string(size) + " bytes at " + std::to_string(offset) + " is out of bounds");
}

}  // namespace

std::span<std::byte> Scratch::take(std::size_t size) {
  auto& buffer = size <= kKept ? kept_ : large_;
  if (!buffer || buffer->size() < size) buffer = Buffer::allocate(MemoryReservation(), std::max(size, kKept));
  return {buffer->data(), size};
}

Result<void> Handlers::run(const RequestContext& ctx, const Request& request, bool retried, Scratch& scratch, Answer& answer) {
  switch (request.opcode()) {
    case Opcode::kLookup: return lookup(ctx, request, answer);
    case Opcode::kGetattr: return getattr(ctx, request, answer);
    case Opcode::kOpen: return open(ctx, request, answer);
    case Opcode::kRead: return read(ctx, request, retried, scratch, answer);
    case Opcode::kOpendir: return open_dir(ctx, request, answer);
    case Opcode::kReaddir:
    case Opcode::kReaddirplus: return read_dir(ctx, request, scratch, answer);
    case Opcode::kGetxattr:
    case Opcode::kListxattr: return xattr(ctx, request, answer);
    case Opcode::kRelease: vfs_.release(std::get<ReleaseIn>(request.args).fh); return {};
    case Opcode::kReleasedir: vfs_.release_dir(std::get<ReleaseIn>(request.args).fh); return {};
    case Opcode::kStatfs: answer.set(encode_statfs(vfs_.statfs())); return {};
    // Nothing is ever dirty here.
    case Opcode::kFlush:
    case Opcode::kFsync:
    case Opcode::kFsyncdir:
    case Opcode::kSyncfs:
    case Opcode::kDestroy: return {};
    case Opcode::kForget:
    case Opcode::kBatchForget:
    case Opcode::kNotifyReply: answer.none = true; return {};
    // Read-only, and honest about it.
    case Opcode::kSetattr:
    case Opcode::kSymlink:
    case Opcode::kMknod:
    case Opcode::kMkdir:
    case Opcode::kUnlink:
    case Opcode::kRmdir:
    case Opcode::kRename:
    case Opcode::kRename2:
    case Opcode::kLink:
    case Opcode::kWrite:
    case Opcode::kSetxattr:
    case Opcode::kRemovexattr:
    case Opcode::kCreate:
    case Opcode::kFallocate:
    case Opcode::kCopyFileRange:
    case Opcode::kCopyFileRange64:
    case Opcode::kTmpfile: answer.error = EROFS; return {};
    case Opcode::kReadlink: answer.error = EINVAL; return {};
    case Opcode::kIoctl: answer.error = ENOTTY; return {};
    // ENOSYS is remembered by the kernel, which then does what is right without us: ACCESS by default_permissions, STATX by
    // GETATTR, LSEEK with the whole file as data, locks kept locally.
    default: answer.error = ENOSYS; return {};
  }
}

Result<void> Handlers::lookup(const RequestContext& ctx, const Request& request, Answer& answer) {
  TRY_ASSIGN(const auto entry, vfs_.lookup(ctx, request.header.nodeid, std::get<NameArgs>(request.args).name));
  // A negative answer that may not be believed for a while is told as an error: the kernel would keep it otherwise.
  if (entry.node == 0 && entry.valid <= Nanos::zero()) answer.error = ENOENT;
  else answer.set(encode_entry(entry));
  return {};
}

Result<void> Handlers::getattr(const RequestContext& ctx, const Request& request, Answer& answer) {
  const auto& in = std::get<GetattrIn>(request.args);
  const vfs::HandleId handle = (in.getattr_flags & kGetattrHandle) != 0 ? in.fh : 0;
  TRY_ASSIGN(const auto entry, vfs_.getattr(ctx, request.header.nodeid, handle));
  answer.set(encode_attr_answer(entry));
  return {};
}

Result<void> Handlers::open(const RequestContext& ctx, const Request& request, Answer& answer) {
  const int flags = static_cast<int>(std::get<OpenIn>(request.args).flags);
  TRY_ASSIGN(answer.opened, vfs_.open(ctx, request.header.nodeid, flags));
  OpenOut out{};
  out.fh = answer.opened;
  // A node is one version of the file, so what the kernel has of it is always right.
  out.open_flags = kOpenKeepCache;
  if (agreed_.minor >= kNoFlushSince && (flags & O_ACCMODE) == O_RDONLY) out.open_flags |= kOpenNoFlush;
  answer.set(out);
  return {};
}

Result<void> Handlers::read(const RequestContext& ctx, const Request& request, bool retried, Scratch& scratch, Answer& answer) {
  const auto& in = std::get<ReadIn>(request.args);
  TRY(check_range(in.offset, in.size));
  TRY_ASSIGN(answer.pages, vfs_.read(ctx, request.header.nodeid, in.fh, {in.offset, in.size}, scratch.take(in.size), retried));
  if (answer.pages.size() > in.size) return fail(ErrorCode::kInternal, "a read was answered with more than it asked for");
  return {};
}

Result<void> Handlers::open_dir(const RequestContext& ctx, const Request& request, Answer& answer) {
  TRY_ASSIGN(answer.opened_dir, vfs_.open_dir(ctx, request.header.nodeid));
  OpenOut out{};
  out.fh = answer.opened_dir;
  answer.set(out);
  return {};
}

Result<void> Handlers::read_dir(const RequestContext& ctx, const Request& request, Scratch& scratch, Answer& answer) {
  const auto& in = std::get<ReadIn>(request.args);
  TRY(check_range(0, in.size));
  DirPacker packer(scratch.take(in.size), request.opcode() == Opcode::kReaddirplus);
  bool full = false;
  const auto visited = vfs_.read_dir(ctx, request.header.nodeid, in.fh, in.offset, [&](const vfs::DirEntry& entry) {
    full = !packer.add(entry);
    return !full;
  });
  if (full && packer.used() == 0) return fail(ErrorCode::kInvalidArgument, "the buffer is too small for one name");
  // What was packed before an error (or before a wait) is right: the rest is asked for next, and fails then if it must.
  if (!visited && packer.used() == 0) return fail(visited.error());
  answer.body = packer.bytes();
  return {};
}

Result<void> Handlers::xattr(const RequestContext& ctx, const Request& request, Answer& answer) {
  const auto& in = std::get<XattrArgs>(request.args);
  if (request.opcode() == Opcode::kGetxattr) {
    TRY_ASSIGN(answer.text, vfs_.get_xattr(ctx, request.header.nodeid, in.name));
  } else {
    TRY_ASSIGN(const auto names, vfs_.list_xattr(ctx, request.header.nodeid));
    for (const auto& name : names) answer.text.append(name).push_back('\0');
  }
  if (in.size == 0) {
    answer.set(GetxattrOut{static_cast<std::uint32_t>(answer.text.size()), 0});
    answer.text.clear();
  } else if (answer.text.size() > in.size) {
    return fail(ErrorCode::kRange, "the attribute is longer than the buffer");
  }
  return {};
}

}  // namespace thermo::fuse
