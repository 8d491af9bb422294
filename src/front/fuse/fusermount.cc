#include "front/fuse/fusermount.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

extern char** environ;

namespace thermo::fuse {
namespace {

constexpr int kCommFd = 3;  // the helper's end of the socket, in the helper

struct Ran {
  int status = 0;      // of waitpid
  std::string output;  // stderr
};

/// Starts fusermount3 with `comm` (may be -1) as its descriptor 3 and collects what it complains about.
Result<pid_t> spawn(const std::vector<std::string>& arguments, int comm, int error_pipe) {
  std::vector<char*> argv;
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    // The helper's complaints are matched and shown: in English, whatever the user's language.
    if (std::strncmp(*entry, "_FUSE_COMMFD=", 13) != 0 && std::strncmp(*entry, "LC_ALL=", 7) != 0) environment.push_back(*entry);
  }
  std::string comm_variable = "_FUSE_COMMFD=" + std::to_string(kCommFd);
  std::string locale = "LC_ALL=C";
  environment.push_back(locale.data());
  if (comm >= 0) environment.push_back(comm_variable.data());
  environment.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, error_pipe, STDERR_FILENO);
  if (comm >= 0) posix_spawn_file_actions_adddup2(&actions, comm, kCommFd);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) {
    return fail(Error(ErrorCode::kNotFound, "fusermount3 is not installed, and only root can do without: apt-get install fuse3")
                    .with_errno(error));
  }
  if (error != 0) return fail(errno_error(error, "start fusermount3"));
  return pid;
}

Ran finish(pid_t pid, int error_pipe) {
  Ran ran;
  char chunk[1024];
  while (true) {
    const ssize_t n = ::read(error_pipe, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    if (ran.output.size() < 4096) ran.output.append(chunk, static_cast<std::size_t>(n));
  }
  while (::waitpid(pid, &ran.status, 0) < 0 && errno == EINTR) {
  }
  while (!ran.output.empty() && ran.output.back() == '\n') ran.output.pop_back();
  return ran;
}

/// The descriptor in the one message the helper sends; invalid when it closed the socket instead.
UniqueFd receive_fd(int socket) {
  char byte = 0;
  iovec vector{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = 0;
  do {
    n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n <= 0) return UniqueFd();
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(int))) {
    return UniqueFd();
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return UniqueFd(fd);
}

Error explain(const Ran& ran, const std::string& what) {
  const auto& text = ran.output;
  const auto says = [&](const char* words) { return text.find(words) != std::string::npos; };
  auto code = ErrorCode::kIo;
  std::string mend;
  if (says("user_allow_other")) {
    code = ErrorCode::kInvalidArgument;
    mend = "; add the line user_allow_other to /etc/fuse.conf, or leave -o allow_other out";
  } else if (says("/dev/fuse: Permission denied")) {
    code = ErrorCode::kAccessDenied;
    mend = "; ordinary users may not open /dev/fuse here: run chmod 666 /dev/fuse as root (udev does so elsewhere)";
  } else if (says("device not found") || says("/dev/fuse")) {
    code = ErrorCode::kNotFound;
    mend = "; run modprobe fuse as root, and in a container give it --device /dev/fuse";
  } else if (says("no write access") || says("not owned") || says("Permission denied") || says("Operation not permitted")) {
    code = ErrorCode::kAccessDenied;
    mend =
        "; an ordinary user needs a folder of their own to mount on, and fusermount3 must be setuid root (in a container also "
        "--cap-add "
        "SYS_ADMIN)";
  } else if (says("busy")) {
    code = ErrorCode::kBusy;
  } else if (says("not found in /etc/mtab") || says("not mounted")) {
    code = ErrorCode::kNotFound;
  }
  return Error(code, what + ": " + (text.empty() ? "fusermount3 failed without a word" : text) + mend);
}

struct Pipe {
  UniqueFd read_end, write_end;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return fail(errno_error(errno, "pipe"));
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

std::string fusermount_options(std::string_view source, const MountOptions& options) {
  std::string text = "fsname=";
  for (const char c : source) {
    if (c == ',' || c == '\\') text += '\\';
    text += c;
  }
  text += ",subtype=thermo,default_permissions,max_read=1048576,nosuid,nodev";
  if (options.allow_other) text += ",allow_other";
  const auto words = flag_words(options.flags);
  if (!words.empty()) text += "," + words;
  return text;
}

bool grants_allow_other(std::string_view fuse_conf) {
  std::istringstream lines{std::string(fuse_conf)};
  std::string line;
  while (std::getline(lines, line)) {
    const auto first = line.find_first_not_of(" \t");
    const auto last = line.find_last_not_of(" \t\r");
    if (first != std::string::npos && line.substr(first, last - first + 1) == "user_allow_other") return true;
  }
  return false;
}

Result<UniqueFd> fusermount_mount(const std::string& path, const std::string& source, const MountOptions& options) {
  if (options.allow_other && ::geteuid() != 0) {
    std::ifstream file("/etc/fuse.conf");
    std::ostringstream text;
    text << file.rdbuf();
    if (!grants_allow_other(text.str())) {
      return fail(ErrorCode::kInvalidArgument,
                  "mount option 'allow_other': an ordinary user may use it only with the line user_allow_other in "
                  "/etc/fuse.conf; add the "
                  "line user_allow_other to /etc/fuse.conf, or leave -o allow_other out");
    }
  }
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) return fail(errno_error(errno, "socketpair"));
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  TRY_ASSIGN(auto errors, make_pipe());
  TRY_ASSIGN(const pid_t pid,
             spawn({"fusermount3", "-o", fusermount_options(source, options), "--", path}, theirs.get(), errors.write_end.get()));
  theirs.reset();
  errors.write_end.reset();
  auto device = receive_fd(ours.get());
  const auto ran = finish(pid, errors.read_end.get());
  if (!device.valid()) return fail(explain(ran, "mount '" + source + "' at " + path));
  return device;
}

Result<void> fusermount_unmount(const std::string& path, bool lazy) {
  TRY_ASSIGN(auto errors, make_pipe());
  std::vector<std::string> arguments = {"fusermount3", "-u"};
  if (lazy) arguments.emplace_back("-z");
  arguments.emplace_back("--");
  arguments.push_back(path);
  TRY_ASSIGN(const pid_t pid, spawn(arguments, -1, errors.write_end.get()));
  errors.write_end.reset();
  const auto ran = finish(pid, errors.read_end.get());
  if (!WIFEXITED(ran.status) || WEXITSTATUS(ran.status) != 0) return fail(explain(ran, "unmount " + path));
  return {};
}

}  // namespace thermo::fuse
