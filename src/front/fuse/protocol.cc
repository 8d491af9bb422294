#include "front/fuse/protocol.h"

#include <array>

namespace thermo::fuse {

std::string_view opcode_name(std::uint32_t opcode) {
  static constexpr std::array<std::string_view, kOpcodeLimit> kNames = {"",
                                                                        "LOOKUP",
                                                                        "FORGET",
                                                                        "GETATTR",
                                                                        "SETATTR",
                                                                        "READLINK",
                                                                        "SYMLINK",
                                                                        "",
                                                                        "MKNOD",
                                                                        "MKDIR",
                                                                        "UNLINK",
                                                                        "RMDIR",
                                                                        "RENAME",
                                                                        "LINK",
                                                                        "OPEN",
                                                                        "READ",
                                                                        "WRITE",
                                                                        "STATFS",
                                                                        "RELEASE",
                                                                        "",
                                                                        "FSYNC",
                                                                        "SETXATTR",
                                                                        "GETXATTR",
                                                                        "LISTXATTR",
                                                                        "REMOVEXATTR",
                                                                        "FLUSH",
                                                                        "INIT",
                                                                        "OPENDIR",
                                                                        "READDIR",
                                                                        "RELEASEDIR",
                                                                        "FSYNCDIR",
                                                                        "GETLK",
                                                                        "SETLK",
                                                                        "SETLKW",
                                                                        "ACCESS",
                                                                        "CREATE",
                                                                        "INTERRUPT",
                                                                        "BMAP",
                                                                        "DESTROY",
                                                                        "IOCTL",
                                                                        "POLL",
                                                                        "NOTIFY_REPLY",
                                                                        "BATCH_FORGET",
                                                                        "FALLOCATE",
                                                                        "READDIRPLUS",
                                                                        "RENAME2",
                                                                        "LSEEK",
                                                                        "COPY_FILE_RANGE",
                                                                        "SETUPMAPPING",
                                                                        "REMOVEMAPPING",
                                                                        "SYNCFS",
                                                                        "TMPFILE",
                                                                        "STATX",
                                                                        "COPY_FILE_RANGE_64"};
  if (opcode >= kNames.size() || kNames[opcode].empty()) return "UNKNOWN";
  return kNames[opcode];
}

}  // namespace thermo::fuse
