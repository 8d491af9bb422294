#pragma once
// vfs values -> the kernel's structs. Pure.

#include <cstddef>
#include <span>

#include "front/fuse/protocol.h"
#include "vfs/vfs.h"

namespace thermo::fuse {

/// Nanos::max() and everything longer is told as a year, negative times as 0.
[[nodiscard]] WireAttr encode_attr(const vfs::Attr& attr);
[[nodiscard]] EntryOut encode_entry(const vfs::Entry& entry);
[[nodiscard]] AttrOut encode_attr_answer(const vfs::Entry& entry);
[[nodiscard]] StatfsOut encode_statfs(const vfs::StatFs& stat);

/// Packs the answer of READDIR and READDIRPLUS into a buffer of the size that the kernel asked for.
class DirPacker {
 public:
  DirPacker(std::span<std::byte> buffer, bool plus) : buffer_(buffer), plus_(plus) {}
  /// False when the entry does not fit any more: the answer is complete.
  [[nodiscard]] bool add(const vfs::DirEntry& entry);
  [[nodiscard]] std::size_t used() const { return used_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return buffer_.first(used_); }

 private:
  std::span<std::byte> buffer_;
  bool plus_;
  std::size_t used_ = 0;
};

}  // namespace thermo::fuse
