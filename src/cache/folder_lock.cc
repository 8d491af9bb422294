#include "cache/folder_lock.h"

#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "cache/layout.h"

namespace thermo::cache {
namespace {

std::string owner_of(io::File& file) {
  std::array<std::byte, 32> text{};
  const auto n = file.read_at(0, text);
  if (!n) return "unknown";
  std::string pid(reinterpret_cast<const char*>(text.data()), *n);
  while (!pid.empty() && (pid.back() == '\n' || pid.back() == ' ')) pid.pop_back();
  return pid.empty() ? "unknown" : pid;
}

}  // namespace

Result<std::unique_ptr<io::File>> lock_folder(io::Disk& disk) {
  auto opened = disk.open(kLockFile, io::OpenMode::kCreate);
  if (!opened) {
    const Error& error = opened.error();
    return fail(Error(error.code(), "cache folder '" + disk.root() + "' is not writable by user " + std::to_string(::geteuid()) +
                                        " (" + std::string(error.message()) +
                                        "); change its owner or choose another with --cache")
                    .with_errno(error.sys_errno()));
  }
  std::unique_ptr<io::File> file = std::move(*opened);
  if (file->fd() < 0) return file;  // a disk without descriptors belongs to whoever made it
  if (::flock(file->fd(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail(errno_error(errno, "lock the cache folder '" + disk.root() + "'"));
    return fail(ErrorCode::kBusy, "cache folder '" + disk.root() + "' is in use by process " + owner_of(*file) +
                                      "; attach to that daemon, stop it, or choose another folder with --cache");
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  TRY(file->truncate(0));
  TRY(file->write_at(0, std::as_bytes(std::span(pid.data(), pid.size()))));
  return file;
}

}  // namespace thermo::cache
