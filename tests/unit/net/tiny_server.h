#pragma once
// A raw-socket HTTP peer for tests: hands every request to a function that may answer with any bytes, stall, cut or reset.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace thermo::testing {

struct TinyRequest {
  std::string method, target, body;
  std::vector<std::pair<std::string, std::string>> headers;  ///< names lower-cased
  int connection = 0;                                        ///< 1 for the first one accepted
  int number = 0;                                            ///< on that connection, from 1
  [[nodiscard]] std::string header(std::string_view lower) const {
    for (const auto& [name, value] : headers) {
      if (name == lower) return value;
    }
    return {};
  }
  [[nodiscard]] bool has(std::string_view lower) const {
    for (const auto& h : headers) {
      if (h.first == lower) return true;
    }
    return false;
  }
};

class TinyConnection {
 public:
  explicit TinyConnection(int fd) : fd_(fd) {}
  /// False when the peer is gone.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  void answer(int status, const std::string& headers, std::string_view body) const {
    send("HTTP/1.1 " + std::to_string(status) + " Text\r\n" + headers + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n");
    send(body);
  }
  void close() { open_ = false; }
  void reset() {
    const linger now{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    open_ = false;
  }
  [[nodiscard]] bool open() const { return open_; }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
  bool open_ = true;
};

class TinyServer {
 public:
  using Handler = std::function<void(TinyConnection&, const TinyRequest&)>;
  explicit TinyServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(listener_, 64) != 0) std::abort();
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~TinyServer() {
    stopping_ = true;
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    {
      const std::lock_guard lock(mutex_);
      for (const int fd : sockets_) shutdown(fd, SHUT_RDWR);
    }
    for (auto& thread : threads_) thread.join();
    ::close(listener_);
  }
  TinyServer(const TinyServer&) = delete;
  TinyServer& operator=(const TinyServer&) = delete;

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::string url(const std::string& path = "") const { return "http://127.0.0.1:" + std::to_string(port_) + path; }
  [[nodiscard]] std::vector<TinyRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  [[nodiscard]] int connections() const { return connections_; }
  [[nodiscard]] bool stopping() const { return stopping_; }

 private:
  void accept_all() {
    while (true) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      const std::lock_guard lock(mutex_);
      sockets_.push_back(fd);
      threads_.emplace_back([this, fd, number = ++connections_] { serve(fd, number); });
    }
  }
  void serve(int fd, int connection_number) {
    TinyConnection connection(fd);
    std::string input;
    for (int number = 1; connection.open(); ++number) {
      TinyRequest request;
      request.connection = connection_number;
      request.number = number;
      if (!read_request(fd, input, request)) break;
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      handler_(connection, request);
    }
    const std::lock_guard lock(mutex_);
    std::erase(sockets_, fd);
    ::close(fd);
  }
  static bool fill(int fd, std::string& input) {
    char buffer[65536];
    const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    if (n <= 0) return false;
    input.append(buffer, static_cast<std::size_t>(n));
    return true;
  }
  static bool read_request(int fd, std::string& input, TinyRequest& request) {
    std::size_t end = 0;
    while ((end = input.find("\r\n\r\n")) == std::string::npos) {
      if (!fill(fd, input)) return false;
    }
    std::size_t at = input.find("\r\n");
    const std::string line = input.substr(0, at);
    request.method = line.substr(0, line.find(' '));
    request.target = line.substr(request.method.size() + 1, line.rfind(' ') - request.method.size() - 1);
    std::size_t length = 0;
    while (at < end) {
      const std::size_t next = input.find("\r\n", at + 2);
      const std::string header = input.substr(at + 2, next - at - 2);
      const std::size_t colon = header.find(':');
      std::string name = header.substr(0, colon);
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      const std::size_t value = header.find_first_not_of(' ', colon + 1);
      request.headers.emplace_back(name, value == std::string::npos ? "" : header.substr(value));
      if (name == "content-length") length = std::stoul(request.headers.back().second);
      at = next;
    }
    while (input.size() < end + 4 + length) {
      if (!fill(fd, input)) return false;
    }
    request.body = input.substr(end + 4, length);
    input.erase(0, end + 4 + length);
    return true;
  }

  const Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::thread acceptor_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> connections_{0};
  mutable std::mutex mutex_;
  std::list<std::thread> threads_;
  std::vector<int> sockets_;
  std::vector<TinyRequest> requests_;
};

}  // namespace thermo::testing
