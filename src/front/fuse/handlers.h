#pragma once
// What each request means: calls vfs and fills an Answer. No descriptor, no thread, no waiting of its own.

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "front/fuse/negotiate.h"
#include "front/fuse/request.h"
#include "vfs/vfs.h"

namespace thermo::fuse {

/// Memory that vfs may put bytes into; lives at least until the answer is sent. Not thread-safe: one per thread or task.
class Scratch {
 public:
  static constexpr std::size_t kKept = 1u << 20;
  /// At least `size` bytes. Up to 1 MiB comes from one buffer that is kept (allocated on first use), more is freed by shrink().
  [[nodiscard]] std::span<std::byte> take(std::size_t size);
  void shrink() { large_.reset(); }

 private:
  BufferPtr kept_;
  BufferPtr large_;
};

/// What goes back to the kernel: an errno, or the concatenation of `fixed`, `text`, `body` and `pages`.
struct Answer {
  int error = 0;      ///< positive errno
  bool none = false;  ///< this request gets no answer
  std::array<std::byte, sizeof(EntryOut)> fixed;
  std::size_t fixed_size = 0;
  std::string text;
  std::span<const std::byte> body;  ///< in the Scratch
  cache::PageReply pages;
  vfs::HandleId opened = 0;  ///< to be released when the kernel does not take the answer
  vfs::HandleId opened_dir = 0;

  template <class T>
  void set(const T& value) {
    static_assert(sizeof(T) <= sizeof(EntryOut));
    std::memcpy(fixed.data(), &value, sizeof value);
    fixed_size = sizeof value;
  }
  [[nodiscard]] std::size_t size() const { return fixed_size + text.size() + body.size() + pages.size(); }
};

/// Thread-safe as far as vfs is.
class Handlers {
 public:
  Handlers(vfs::Vfs& vfs, const Negotiated& agreed) : vfs_(vfs), agreed_(agreed) {}
  /// `retried`: called a second time, with ctx.may_wait, after the first answered kWouldWaitDevice or kWouldWaitStore.
  [[nodiscard]] Result<void> run(const RequestContext& ctx, const Request& request, bool retried, Scratch& scratch,
                                 Answer& answer);

 private:
  Result<void> lookup(const RequestContext& ctx, const Request& request, Answer& answer);
  Result<void> getattr(const RequestContext& ctx, const Request& request, Answer& answer);
  Result<void> open(const RequestContext& ctx, const Request& request, Answer& answer);
  Result<void> read(const RequestContext& ctx, const Request& request, bool retried, Scratch& scratch, Answer& answer);
  Result<void> open_dir(const RequestContext& ctx, const Request& request, Answer& answer);
  Result<void> read_dir(const RequestContext& ctx, const Request& request, Scratch& scratch, Answer& answer);
  Result<void> xattr(const RequestContext& ctx, const Request& request, Answer& answer);

  vfs::Vfs& vfs_;
  const Negotiated agreed_;
};

}  // namespace thermo::fuse
