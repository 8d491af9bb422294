#include "front/fuse/encode.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>

namespace thermo::fuse {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kLongest = 365ll * 24 * 3600;  // seconds; the kernel adds it to a clock, so not "for ever"

struct Validity {
  std::uint64_t seconds;
  std::uint32_t nanos;
};

Validity validity(Nanos valid) {
  const std::int64_t count = std::max<std::int64_t>(valid.count(), 0);
  if (count / kSecond >= kLongest) return {static_cast<std::uint64_t>(kLongest), 0};
  return {static_cast<std::uint64_t>(count / kSecond), static_cast<std::uint32_t>(count % kSecond)};
}

}  // namespace

WireAttr encode_attr(const vfs::Attr& attr) {
  WireAttr out{};
  out.ino = attr.ino;
  out.size = attr.size;
  out.blocks = attr.blocks;
  std::int64_t seconds = attr.mtime / kSecond;
  std::int64_t nanos = attr.mtime % kSecond;
  if (nanos < 0) {  // before 1970
    nanos += kSecond;
    --seconds;
  }
  out.atime = out.mtime = out.ctime = static_cast<std::uint64_t>(seconds);
  out.atimensec = out.mtimensec = out.ctimensec = static_cast<std::uint32_t>(nanos);
  out.mode = attr.mode;
  out.nlink = attr.nlink;
  out.uid = attr.uid;
  out.gid = attr.gid;
  // st_blksize is what buffered readers fetch at a time: more than a block would turn their small random reads into big ones.
  out.blksize = 4096;
  return out;
}

EntryOut encode_entry(const vfs::Entry& entry) {
  EntryOut out{};
  const auto valid = validity(entry.valid);
  out.nodeid = entry.node;
  out.entry_valid = valid.seconds;
  out.entry_valid_nsec = valid.nanos;
  if (entry.node == 0) return out;
  out.attr_valid = valid.seconds;
  out.attr_valid_nsec = valid.nanos;
  out.attr = encode_attr(entry.attr);
  return out;
}

AttrOut encode_attr_answer(const vfs::Entry& entry) {
  AttrOut out{};
  const auto valid = validity(entry.valid);
  out.attr_valid = valid.seconds;
  out.attr_valid_nsec = valid.nanos;
  out.attr = encode_attr(entry.attr);
  return out;
}

StatfsOut encode_statfs(const vfs::StatFs& stat) {
  StatfsOut out{};
  out.bsize = out.frsize = 4096;
  out.blocks = stat.total_bytes / 4096;
  out.bfree = out.bavail = stat.free_bytes / 4096;
  out.files = out.ffree = stat.files;
  out.namelen = catalog::kMaxNameBytes;
  return out;
}

bool DirPacker::add(const vfs::DirEntry& entry) {
  const std::size_t head = plus_ ? sizeof(DirentPlus) : sizeof(Dirent);
  const std::size_t size = (head + entry.name.size() + 7) / 8 * 8;
  if (size > buffer_.size() - used_) return false;
  DirentPlus record{};
  record.dirent.ino = entry.entry.attr.ino;
  record.dirent.off = entry.cookie;
  record.dirent.namelen = static_cast<std::uint32_t>(entry.name.size());
  record.dirent.type = (entry.entry.attr.mode & S_IFMT) >> 12;
  if (plus_) {
    record.entry = encode_entry(entry.entry);
    // The kernel counts a lookup for each nodeid but those of "." and "..", and never forgets these two.
    if (entry.name == "." || entry.name == "..") record.entry.nodeid = 0;
  }
  std::byte* at = buffer_.data() + used_;
  std::memset(at + size - 8, 0, 8);
  if (plus_) std::memcpy(at, &record, sizeof record);
  else std::memcpy(at, &record.dirent, sizeof record.dirent);
  std::memcpy(at + head, entry.name.data(), entry.name.size());
  used_ += size;
  return true;
}

}  // namespace thermo::fuse
