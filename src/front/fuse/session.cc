#include "front/fuse/session.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>

#include "base/log.h"
#include "front/fuse/notifier.h"
#include "front/fuse/server.h"
#include "front/fuse/ticker.h"

namespace thermo::fuse {
namespace {

constexpr std::size_t kFrameBytes = kMaxWrite + 4096;  // the largest request: a header, its arguments and max_write
static_assert(kFrameBytes >= kMinReadBuffer && kFrameBytes >= sizeof(InHeader) + sizeof(WriteIn) + kMaxWrite);
constexpr int kInitTimeoutMs = 10'000;
constexpr auto kWakeEvery = std::chrono::milliseconds(5);
constexpr auto kWatchEvery = std::chrono::milliseconds(200);

/// Ends a blocking read of /dev/fuse when no unmount does: its handler does nothing, and without SA_RESTART the read answers
/// EINTR.
int wake_signal() { return SIGRTMIN + 4; }

void install_wake_signal() {
  static const bool installed = [] {
    struct sigaction action{};
    action.sa_handler = [](int) {};
    sigemptyset(&action.sa_mask);
    return ::sigaction(wake_signal(), &action, nullptr) == 0;
  }();
  (void)installed;
}

UniqueFd clone_device(int device) {
  UniqueFd clone(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  auto original = static_cast<std::uint32_t>(device);
  if (clone.valid() && ::ioctl(clone.get(), kDeviceClone, &original) != 0) clone.reset();
  return clone;
}

/// Reads the first request, agrees on a protocol and answers.
Result<Negotiated> shake_hands(int device, std::uint32_t max_minor) {
  std::vector<std::byte> frame(kFrameBytes);
  pollfd ready{device, POLLIN, 0};
  int polled = 0;
  do {
    polled = ::poll(&ready, 1, kInitTimeoutMs);
  } while (polled < 0 && errno == EINTR);
  if (polled == 0) return fail(ErrorCode::kTimeout, "FUSE: the kernel sent no INIT request within 10 s");
  ssize_t n = 0;
  do {
    n = ::read(device, frame.data(), frame.size());
  } while (n < 0 && errno == EINTR);
  if (n < 0) return fail(errno_error(errno, "FUSE: read the INIT request"));
  TRY_ASSIGN(const auto request, parse_request(std::span(frame).first(static_cast<std::size_t>(n))));
  const auto* init = std::get_if<InitIn>(&request.args);
  if (init == nullptr) return fail(ErrorCode::kInternal, "FUSE: the first request is not INIT");
  auto agreed = negotiate(*init, max_minor);
  OutHeader header{sizeof(OutHeader), 0, request.header.unique};
  if (!agreed) {
    header.error = -EPROTO;
    (void)!::write(device, &header, sizeof header);
    return fail(agreed.error());
  }
  const InitOut out = init_answer(*agreed);
  header.len += sizeof out;
  std::array<std::byte, sizeof header + sizeof out> bytes;
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, &out, sizeof out);
  if (::write(device, bytes.data(), bytes.size()) < 0) return fail(errno_error(errno, "FUSE: answer INIT"));
  return agreed;
}

}  // namespace

struct FuseSession::Impl final : vfs::KernelCache {
  Impl(UniqueFd device_fd, vfs::Vfs& the_vfs, const Negotiated& result, const SessionOptions& given)
      : device(std::move(device_fd)),
        vfs(the_vfs),
        agreed(result),
        options(given),
        server(the_vfs, result, given),
        notifier(device.get(), result, *given.metrics) {}

  void invalidate_entry(vfs::NodeId parent, const std::string& name) override { notifier.invalidate_entry(parent, name); }

  void start_threads() {
    std::size_t count = options.threads;
    if (count == 0) count = std::min<std::size_t>(std::max<std::size_t>(1, std::thread::hardware_concurrency()) * 2, 16);
    devices.push_back(device.get());
    for (std::size_t i = 1; i < count; ++i) {
      auto clone = clone_device(device.get());
      // An ordinary user may not be allowed to open the device: then threads share descriptors, a little slower.
      devices.push_back(clone.valid() ? clone.get() : device.get());
      if (clone.valid()) clones.push_back(std::move(clone));
    }
    {
      MutexLock lock(mutex);
      running = count;
    }
    watchdog.start("fuse-watchdog");
    notifier.start();
    vfs.set_kernel_cache(this);
    for (std::size_t i = 0; i < count; ++i) {
      threads.emplace_back([this, fd = devices[i]] { run(fd); });
      pthread_setname_np(threads.back().native_handle(), ("fuse-" + std::to_string(i)).c_str());
    }
  }

  void run(int fd) {
    sigset_t mask;
    sigfillset(&mask);
    sigdelset(&mask, wake_signal());
    pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    Scratch scratch;
    const auto frame = std::make_unique<std::byte[]>(kFrameBytes);
    while (!stopping.load(std::memory_order_relaxed)) {
      const ssize_t n = ::read(fd, frame.get(), kFrameBytes);
      if (n >= 0) {
        server.serve(fd, {frame.get(), static_cast<std::size_t>(n)}, scratch);
      } else if (errno == ENODEV || errno == ECONNABORTED) {
        break;                                                            // unmounted or aborted
      } else if (errno != EINTR && errno != EAGAIN && errno != ENOENT) {  // ENOENT: interrupted before it was read
        log::error("fuse: {}: reading requests failed: errno {}", options.name, errno);
        break;
      }
    }
    // Nobody waits for these any more; their fills need not hold up the end.
    server.close();
    const bool last = [&] {
      MutexLock lock(mutex);
      return --running == 0;
    }();
    if (!last) return;
    if (options.on_end) options.on_end();
    MutexLock lock(mutex);
    done = true;
    ended.notify_all();
  }

  void wait() {
    MutexLock lock(mutex);
    while (!done) ended.wait(mutex);
  }

  /// Wakes threads that block in read until all are out.
  void end_threads() {
    stopping = true;
    mutex.lock();
    while (!done) {
      mutex.unlock();
      for (auto& thread : threads) pthread_kill(thread.native_handle(), wake_signal());
      mutex.lock();
      if (!done) (void)ended.wait_until(mutex, Clock::system().now() + kWakeEvery);
    }
    mutex.unlock();
    for (auto& thread : threads) thread.join();
    threads.clear();
  }

  void stop() {
    {
      MutexLock lock(mutex);
      if (stopped) return;
      stopped = true;
    }
    server.close();
    vfs.set_kernel_cache(nullptr);
    // Before the serving threads: a notification may wait for a folder's lock, held by a program that waits for us.
    notifier.stop();
    end_threads();
    server.drain();
    watchdog.stop();
    clones.clear();
    device.reset();
  }

  UniqueFd device;
  std::vector<UniqueFd> clones;
  std::vector<int> devices;  // one per thread
  vfs::Vfs& vfs;
  const Negotiated agreed;
  const SessionOptions options;
  Server server;
  Notifier notifier;
  Ticker watchdog{kWatchEvery, [this] { server.expire(); }};
  std::atomic<bool> stopping{false};
  mutable Mutex mutex{LockRank::kSession, "fuse session"};
  CondVar ended;
  std::size_t running GUARDED_BY(mutex) = 0;
  bool done GUARDED_BY(mutex) = false;
  bool stopped GUARDED_BY(mutex) = false;
  std::vector<std::thread> threads;
};

FuseSession::FuseSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

FuseSession::~FuseSession() { stop(); }

Result<std::unique_ptr<FuseSession>> FuseSession::start(UniqueFd device, vfs::Vfs& vfs, const SessionOptions& options) {
  install_wake_signal();
  TRY_ASSIGN(const auto agreed, shake_hands(device.get(), options.max_minor));
  auto impl = std::make_unique<Impl>(std::move(device), vfs, agreed, options);
  impl->start_threads();
  log::info("fuse: {} speaks 7.{}, {} threads on {} descriptors", options.name, agreed.minor, impl->threads.size(),
            impl->clones.size() + 1);
  return std::unique_ptr<FuseSession>(new FuseSession(std::move(impl)));
}

void FuseSession::wait() { impl_->wait(); }
void FuseSession::stop() { impl_->stop(); }

bool FuseSession::ended() const {
  MutexLock lock(impl_->mutex);
  return impl_->done;
}

const Negotiated& FuseSession::negotiated() const { return impl_->agreed; }
std::size_t FuseSession::cloned_devices() const { return impl_->clones.size(); }
std::size_t FuseSession::threads() const { return impl_->devices.size(); }
std::size_t FuseSession::waiting() const { return impl_->server.waiting(); }

}  // namespace thermo::fuse
