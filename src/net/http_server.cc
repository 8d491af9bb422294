#include "net/http_server.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <list>
#include <thread>

#include "base/log.h"
#include "base/mutex.h"
#include "net/http_server_connection.h"

namespace thermo::net {
namespace {

/// Running exchanges get this long after stop() before their sockets are shut down under them.
constexpr auto kStopGrace = std::chrono::seconds(2);

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

/// sendfile and splice raise SIGPIPE where send has a flag against it; threads inherit the mask from the accepting one.
void block_sigpipe() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

struct Slot {
  Fd fd;
  std::thread thread;
  std::atomic<bool> busy{false};
  std::atomic<bool> done{false};
};

class Server final : public HttpServer {
 public:
  Server(HttpServerOptions options, Handler handler, Fd listener, Fd wake, std::uint16_t port, std::shared_ptr<TlsContext> tls)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        listener_(std::move(listener)),
        wake_(std::move(wake)),
        port_(port),
        tls_(std::move(tls)),
        acceptor_([this] { accept_loop(); }) {}
  ~Server() override { stop(); }

  std::uint16_t port() const override { return port_; }

  void stop() override {
    if (stopping_.exchange(true)) {
      if (acceptor_.joinable()) acceptor_.join();
      return;
    }
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
    acceptor_.join();
    ::shutdown(listener_.get(), SHUT_RDWR);
    listener_ = Fd();
    shut_down_where([](const Slot& slot) { return !slot.busy.load(); }, SHUT_RD);
    const auto deadline = Clock::system().now() + kStopGrace;
    {
      MutexLock lock(mutex_);
      while (live_ > 0 && changed_.wait_until(mutex_, deadline)) {
      }
    }
    shut_down_where([](const Slot&) { return true; }, SHUT_RDWR);
    std::list<std::unique_ptr<Slot>> slots;
    {
      MutexLock lock(mutex_);
      slots.swap(slots_);
    }
    for (auto& slot : slots) slot->thread.join();
  }

 private:
  template <class Predicate>
  void shut_down_where(Predicate wanted, int how) {
    MutexLock lock(mutex_);
    for (auto& slot : slots_) {
      if (!slot->done.load() && wanted(*slot)) ::shutdown(slot->fd.get(), how);
    }
  }

  void accept_loop() {
    block_sigpipe();
    std::array<pollfd, 2> waits{{{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    while (!stopping_.load()) {
      if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
      if (waits[0].revents == 0) continue;
      Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      reap();
      if (fd.get() < 0) {
        // Out of descriptors: the connection stays in the queue, so a short rest keeps this loop from spinning.
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        continue;
      }
      admit(std::move(fd));
    }
  }

  void admit(Fd fd) {
    prepare_socket(fd.get(), options_.idle_timeout);
    auto slot = std::make_unique<Slot>();
    slot->fd = std::move(fd);
    if (!start_thread(slot)) turn_away(slot->fd.get());
  }

  /// Takes the slot; false (and the slot stays) at the cap, or when the system has no thread to give.
  [[nodiscard]] bool start_thread(std::unique_ptr<Slot>& slot) {
    Slot* raw = slot.get();
    MutexLock lock(mutex_);
    if (live_ >= options_.max_connections) return false;
    try {
      raw->thread = std::thread([this, raw] { run(*raw); });
    } catch (const std::system_error& e) {
      log::warn("http server: cannot start a thread for a connection: {}", e.what());
      return false;
    }
    ++live_;
    slots_.push_back(std::move(slot));
    return true;
  }

  /// Does not wait for the peer: what it has sent already is read away so that closing does not reset the answer.
  void turn_away(int fd) {
    static constexpr std::string_view kAnswer =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    std::array<char, 4096> sink;
    if (!tls_) {
      (void)!::send(fd, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      ::shutdown(fd, SHUT_WR);
      while (::recv(fd, sink.data(), sink.size(), MSG_DONTWAIT) > 0) {
      }
    }
  }

  void run(Slot& slot) {
    auto plain =
        tls_ ? make_tls_socket(slot.fd.get(), tls_) : Result<std::unique_ptr<ServerSocket>>(make_plain_socket(slot.fd.get()));
    if (plain) {
      ServerConnection connection(slot.fd.get(), **plain, stopping_);
      connection.serve(handler_, slot.busy);
    } else {
      log::debug("http server: {}", plain.error().describe());
    }
    plain = fail(ErrorCode::kCancelled);  // TLS state goes before its descriptor
    MutexLock lock(mutex_);
    // Under the lock: stop() must not shut down a descriptor number that somebody else got meanwhile.
    slot.fd = Fd();
    slot.done.store(true);
    --live_;
    changed_.notify_all();
  }

  void reap() {
    std::list<std::unique_ptr<Slot>> gone;
    {
      MutexLock lock(mutex_);
      for (auto it = slots_.begin(); it != slots_.end();) {
        auto next = std::next(it);
        if ((*it)->done.load()) gone.splice(gone.end(), slots_, it);
        it = next;
      }
    }
    for (auto& slot : gone) slot->thread.join();
  }

  const HttpServerOptions options_;
  const Handler handler_;
  Fd listener_, wake_;
  const std::uint16_t port_;
  const std::shared_ptr<TlsContext> tls_;
  std::atomic<bool> stopping_{false};
  Mutex mutex_{LockRank::kHttp, "http server connections"};
  CondVar changed_;
  std::list<std::unique_ptr<Slot>> slots_ GUARDED_BY(mutex_);
  std::size_t live_ GUARDED_BY(mutex_) = 0;
  std::thread acceptor_;  // last: starts when all above is there
};

}  // namespace

Result<std::unique_ptr<HttpServer>> start_http_server(const HttpServerOptions& options, Handler handler) {
  std::shared_ptr<TlsContext> tls;
  if (options.tls_certificate.empty() != options.tls_key.empty())
    return fail(ErrorCode::kInvalidArgument, "TLS needs both a certificate and a key file");
  if (!options.tls_certificate.empty()) {
    TRY_ASSIGN(tls, make_tls_context(options.tls_certificate, options.tls_key));
  }
  const std::string where = fmt::format("listen on {}:{}", options.address, options.port);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(options.port);
  if (::inet_pton(AF_INET, options.address.c_str(), &address.sin_addr) != 1)
    return fail(ErrorCode::kInvalidArgument, fmt::format("{}: not an IPv4 address; write one such as 127.0.0.1", where));
  Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (listener.get() < 0) return fail(errno_error(errno, where));
  const int one = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EADDRINUSE)
      return fail(Error(ErrorCode::kBusy, fmt::format("{}: the port is taken; choose another", where)).with_errno(errno));
    return fail(errno_error(errno, where));
  }
  if (::listen(listener.get(), 1024) != 0) return fail(errno_error(errno, where));
  socklen_t size = sizeof address;
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return fail(errno_error(errno, where));
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (wake.get() < 0) return fail(errno_error(errno, where));
  return std::make_unique<Server>(options, std::move(handler), std::move(listener), std::move(wake), ntohs(address.sin_port),
                                  std::move(tls));
}

}  // namespace thermo::net
