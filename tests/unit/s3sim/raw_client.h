#pragma once
// A client that sends bytes as they are told and shows what came back: the tests look at the wire, not at what a library made of
// it.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace thermo::test {

struct RawResponse {
  int status = 0;                              ///< 0: the connection ended without an answer
  std::map<std::string, std::string> headers;  ///< names lower-cased
  std::string body;
  bool complete = false;  ///< the body is as long as announced
  bool reset = false;     ///< it ended with an error, not with an end
  [[nodiscard]] std::string header(const std::string& name) const {
    const auto it = headers.find(name);
    return it == headers.end() ? "" : it->second;
  }
};

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : port_(port) {}
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient() { close(); }

  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    rest_.clear();
  }
  [[nodiscard]] bool connected() const { return fd_ >= 0; }

  bool send(std::string_view bytes) {
    if (fd_ < 0) {
      rest_.clear();  // what a broken answer left behind
      if (!open()) return false;
    }
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  /// One exchange on the kept connection (a new one where the last was closed).
  RawResponse request(std::string_view method, std::string_view target, std::string_view headers = "",
                      std::string_view body = "") {
    std::string text =
        std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + std::string(headers);
    if (!body.empty() || method == "PUT" || method == "POST") text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    text += "\r\n";
    text += body;
    send(text);
    return receive(method == "HEAD");
  }

  RawResponse receive(bool head_only = false) {
    RawResponse out;
    std::size_t end = 0;
    while ((end = rest_.find("\r\n\r\n")) == std::string::npos) {
      if (!more(out)) return out;
    }
    std::string head = rest_.substr(0, end + 2);
    rest_.erase(0, end + 4);
    out.status = std::stoi(head.substr(9, 3));
    for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
      const std::size_t stop = head.find("\r\n", at);
      const std::string line = head.substr(at, stop - at);
      const std::size_t colon = line.find(": ");
      std::string name = line.substr(0, colon);
      for (char& c : name) c = static_cast<char>(std::tolower(c));
      out.headers[name] = colon == std::string::npos ? "" : line.substr(colon + 2);
      at = stop + 2;
    }
    if (out.header("transfer-encoding") == "chunked" && !head_only) {
      while ((end = rest_.find("\r\n0\r\n\r\n")) == std::string::npos) {
        if (!more(out)) return out;
      }
      out.body = rest_.substr(0, end + 7);
      rest_.erase(0, end + 7);
      out.complete = true;
      return out;
    }
    const bool none = head_only || out.status < 200 || out.status == 204 || out.status == 304;
    const std::size_t length = none || out.header("content-length").empty() ? 0 : std::stoul(out.header("content-length"));
    while (rest_.size() < length) {
      if (!more(out)) {
        out.body = rest_;
        return out;
      }
    }
    out.body = rest_.substr(0, length);
    rest_.erase(0, length);
    out.complete = true;
    if (out.header("connection") == "close") close();
    return out;
  }

  /// Bytes that came and belong to no answer.
  [[nodiscard]] const std::string& rest() const { return rest_; }
  /// True when the peer closes within the time.
  bool closed_within(int milliseconds) {
    if (fd_ < 0) return true;
    timeval tv{milliseconds / 1000, milliseconds % 1000 * 1000};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
    char c = 0;
    const ssize_t n = ::recv(fd_, &c, 1, 0);
    return n == 0 || (n < 0 && errno == ECONNRESET);
  }

 private:
  bool open() {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    timeval tv{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return true;
    close();
    return false;
  }

  bool more(RawResponse& out) {
    char buffer[65536];
    const ssize_t n = fd_ < 0 ? 0 : ::recv(fd_, buffer, sizeof buffer, 0);
    if (n > 0) {
      rest_.append(buffer, static_cast<std::size_t>(n));
      return true;
    }
    out.reset = n < 0;
    const std::string kept = rest_;
    close();
    rest_ = kept;
    return false;
  }

  const std::uint16_t port_;
  int fd_ = -1;
  std::string rest_;
};

}  // namespace thermo::test
