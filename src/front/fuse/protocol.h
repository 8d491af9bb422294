#pragma once
// The kernel's FUSE protocol as far as this mount speaks it, up to version 7.45. Debian's kernel headers stop at 7.38, so the
// layouts are written down here; every size is checked. Numbers and layouts are the kernel's ABI (Linux 6.18,
// include/uapi/linux/fuse.h) and never change. All structs are copied in and out with memcpy: request buffers promise no
// alignment.

#include <sys/ioctl.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace thermo::fuse {

inline constexpr std::uint32_t kProtocolMajor = 7;
inline constexpr std::uint32_t kProtocolMinor = 45;
/// Older kernels (before 3.15) answer in shorter structs; they are refused at INIT.
inline constexpr std::uint32_t kMinProtocolMinor = 23;

enum class Opcode : std::uint32_t {
  kLookup = 1,
  kForget = 2,  ///< no answer
  kGetattr = 3,
  kSetattr = 4,
  kReadlink = 5,
  kSymlink = 6,
  kMknod = 8,
  kMkdir = 9,
  kUnlink = 10,
  kRmdir = 11,
  kRename = 12,
  kLink = 13,
  kOpen = 14,
  kRead = 15,
  kWrite = 16,
  kStatfs = 17,
  kRelease = 18,
  kFsync = 20,
  kSetxattr = 21,
  kGetxattr = 22,
  kListxattr = 23,
  kRemovexattr = 24,
  kFlush = 25,
  kInit = 26,
  kOpendir = 27,
  kReaddir = 28,
  kReleasedir = 29,
  kFsyncdir = 30,
  kGetlk = 31,
  kSetlk = 32,
  kSetlkw = 33,
  kAccess = 34,
  kCreate = 35,
  kInterrupt = 36,  ///< no answer when it was taken
  kBmap = 37,
  kDestroy = 38,
  kIoctl = 39,
  kPoll = 40,
  kNotifyReply = 41,  ///< no answer
  kBatchForget = 42,  ///< no answer
  kFallocate = 43,
  kReaddirplus = 44,
  kRename2 = 45,
  kLseek = 46,
  kCopyFileRange = 47,
  kSetupmapping = 48,
  kRemovemapping = 49,
  kSyncfs = 50,
  kTmpfile = 51,
  kStatx = 52,
  kCopyFileRange64 = 53,
};
inline constexpr std::uint32_t kOpcodeLimit = 54;  ///< first number that is no opcode here

/// "LOOKUP"; "UNKNOWN" for a number that is no opcode here.
[[nodiscard]] std::string_view opcode_name(std::uint32_t opcode);

// INIT flags (bits 32..63 travel in flags2 and need kInitExt).
inline constexpr std::uint64_t kAsyncRead = 1ull << 0;
inline constexpr std::uint64_t kAutoInvalData = 1ull << 12;
inline constexpr std::uint64_t kDoReaddirplus = 1ull << 13;
inline constexpr std::uint64_t kReaddirplusAuto = 1ull << 14;
inline constexpr std::uint64_t kAsyncDio = 1ull << 15;
inline constexpr std::uint64_t kParallelDirops = 1ull << 18;
inline constexpr std::uint64_t kMaxPages = 1ull << 22;
inline constexpr std::uint64_t kCacheSymlinks = 1ull << 23;
inline constexpr std::uint64_t kExplicitInvalData = 1ull << 25;
inline constexpr std::uint64_t kInitExt = 1ull << 30;
inline constexpr std::uint64_t kHasExpireOnly = 1ull << 35;
inline constexpr std::uint64_t kPassthrough = 1ull << 37;
inline constexpr std::uint64_t kHasResend = 1ull << 39;

// OPEN and OPENDIR answers.
inline constexpr std::uint32_t kOpenDirectIo = 1u << 0;
inline constexpr std::uint32_t kOpenKeepCache = 1u << 1;
inline constexpr std::uint32_t kOpenNoFlush = 1u << 5;  ///< since 7.35

inline constexpr std::uint32_t kGetattrHandle = 1u << 0;  ///< GETATTR: fh is set
inline constexpr std::uint32_t kExpireOnly = 1u << 0;     ///< INVAL_ENTRY: look the name up again, do not drop it
inline constexpr std::uint64_t kUniqueResend = 1ull << 63;

// Notifications: unsolicited messages to the kernel (unique 0, the code in the error field).
inline constexpr std::int32_t kNotifyInvalEntry = 3;
inline constexpr std::int32_t kNotifyIncEpoch = 8;  ///< since 7.44: every cached name is looked up again

inline constexpr std::size_t kMinReadBuffer = 8192;

struct InHeader {
  std::uint32_t len;
  std::uint32_t opcode;
  std::uint64_t unique;
  std::uint64_t nodeid;
  std::uint32_t uid;
  std::uint32_t gid;
  std::uint32_t pid;
  std::uint16_t total_extlen;  ///< of extensions, in 8-byte units
  std::uint16_t padding;
};
static_assert(sizeof(InHeader) == 40);

struct OutHeader {
  std::uint32_t len;
  std::int32_t error;  ///< 0 or -errno; of a notification its code
  std::uint64_t unique;
};
static_assert(sizeof(OutHeader) == 16);

struct WireAttr {
  std::uint64_t ino;
  std::uint64_t size;
  std::uint64_t blocks;
  std::uint64_t atime;
  std::uint64_t mtime;
  std::uint64_t ctime;
  std::uint32_t atimensec;
  std::uint32_t mtimensec;
  std::uint32_t ctimensec;
  std::uint32_t mode;
  std::uint32_t nlink;
  std::uint32_t uid;
  std::uint32_t gid;
  std::uint32_t rdev;
  std::uint32_t blksize;
  std::uint32_t flags;
};
static_assert(sizeof(WireAttr) == 88);

struct EntryOut {
  std::uint64_t nodeid;
  std::uint64_t generation;
  std::uint64_t entry_valid;
  std::uint64_t attr_valid;
  std::uint32_t entry_valid_nsec;
  std::uint32_t attr_valid_nsec;
  WireAttr attr;
};
static_assert(sizeof(EntryOut) == 128);

struct AttrOut {
  std::uint64_t attr_valid;
  std::uint32_t attr_valid_nsec;
  std::uint32_t dummy;
  WireAttr attr;
};
static_assert(sizeof(AttrOut) == 104);

struct GetattrIn {
  std::uint32_t getattr_flags;
  std::uint32_t dummy;
  std::uint64_t fh;
};
static_assert(sizeof(GetattrIn) == 16);

struct OpenIn {
  std::uint32_t flags;
  std::uint32_t open_flags;
};
static_assert(sizeof(OpenIn) == 8);

struct OpenOut {
  std::uint64_t fh;
  std::uint32_t open_flags;
  std::int32_t backing_id;
};
static_assert(sizeof(OpenOut) == 16);

struct ReleaseIn {
  std::uint64_t fh;
  std::uint32_t flags;
  std::uint32_t release_flags;
  std::uint64_t lock_owner;
};
static_assert(sizeof(ReleaseIn) == 24);

struct ReadIn {
  std::uint64_t fh;
  std::uint64_t offset;
  std::uint32_t size;
  std::uint32_t read_flags;
  std::uint64_t lock_owner;
  std::uint32_t flags;
  std::uint32_t padding;
};
static_assert(sizeof(ReadIn) == 40);

struct WriteIn {
  std::uint64_t fh;
  std::uint64_t offset;
  std::uint32_t size;
  std::uint32_t write_flags;
  std::uint64_t lock_owner;
  std::uint32_t flags;
  std::uint32_t padding;
};
static_assert(sizeof(WriteIn) == 40);

struct StatfsOut {
  std::uint64_t blocks;
  std::uint64_t bfree;
  std::uint64_t bavail;
  std::uint64_t files;
  std::uint64_t ffree;
  std::uint32_t bsize;
  std::uint32_t namelen;
  std::uint32_t frsize;
  std::uint32_t padding;
  std::uint32_t spare[6];
};
static_assert(sizeof(StatfsOut) == 80);

struct GetxattrIn {
  std::uint32_t size;  ///< 0: only the length is asked for
  std::uint32_t padding;
};
static_assert(sizeof(GetxattrIn) == 8);

struct GetxattrOut {
  std::uint32_t size;
  std::uint32_t padding;
};
static_assert(sizeof(GetxattrOut) == 8);

struct InterruptIn {
  std::uint64_t unique;
};
static_assert(sizeof(InterruptIn) == 8);

struct InitIn {
  std::uint32_t major;
  std::uint32_t minor;
  std::uint32_t max_readahead;
  std::uint32_t flags;
  std::uint32_t flags2;  ///< from here on since 7.36
  std::uint32_t unused[11];
};
static_assert(sizeof(InitIn) == 64);
inline constexpr std::size_t kInitInShort = 16;

struct InitOut {
  std::uint32_t major;
  std::uint32_t minor;
  std::uint32_t max_readahead;
  std::uint32_t flags;
  std::uint16_t max_background;
  std::uint16_t congestion_threshold;
  std::uint32_t max_write;
  std::uint32_t time_gran;  ///< nanoseconds
  std::uint16_t max_pages;
  std::uint16_t map_alignment;
  std::uint32_t flags2;
  std::uint32_t max_stack_depth;
  std::uint16_t request_timeout;
  std::uint16_t unused[11];
};
static_assert(sizeof(InitOut) == 64);

/// Followed by the name, zero-padded to 8 bytes.
struct Dirent {
  std::uint64_t ino;
  std::uint64_t off;
  std::uint32_t namelen;
  std::uint32_t type;
};
static_assert(sizeof(Dirent) == 24);

struct DirentPlus {
  EntryOut entry;
  Dirent dirent;
};
static_assert(sizeof(DirentPlus) == 152);

/// Followed by the name and a NUL.
struct NotifyInvalEntryOut {
  std::uint64_t parent;
  std::uint32_t namelen;
  std::uint32_t flags;
};
static_assert(sizeof(NotifyInvalEntryOut) == 16);

/// Makes a fresh descriptor of /dev/fuse one more of the connection whose descriptor the argument names.
inline constexpr unsigned long kDeviceClone = _IOR(229, 0, std::uint32_t);

}  // namespace thermo::fuse
