// One connection to the HTTP server: heads, bodies with a length and chunked ones, pipelined; arriving in pieces. The handler
// reads bodies in one of several ways and answers.
//
// Input: a byte that chooses sizes and ways, then what the client sends.

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>

#include "fuzz/fuzz.h"
#include "net/http_server_connection.h"
#include "net/http_server_parse.h"

namespace thermo::fuzz {
namespace {

/// The client's side in memory. After its last byte the connection breaks: nobody waits.
class Client final : public net::ServerSocket {
 public:
  Client(std::string_view sends, std::size_t piece) : left_(sends), piece_(piece) {}

  Result<std::size_t> read(std::span<std::byte> dst) override {
    if (left_.empty()) return fail(ErrorCode::kUnavailable, "the client is gone");
    const auto n = std::min({dst.size(), left_.size(), piece_});
    std::memcpy(dst.data(), left_.data(), n);
    left_.remove_prefix(n);
    return n;
  }
  Result<void> write(std::span<iovec> parts, bool /*more*/) override {
    for (const auto& part : parts) answers.append(static_cast<const char*>(part.iov_base), part.iov_len);
    return {};
  }
  Result<void> send_file(int, std::uint64_t, std::uint64_t) override { return fail(ErrorCode::kNotSupported); }
  [[nodiscard]] int raw_fd() const override { return -1; }
  void finish_writing() override {}

  std::string answers;

 private:
  std::string_view left_;
  std::size_t piece_;
};

/// Its peer has hung up, so that lingering ends at once.
int closed_socket() {
  std::array<int, 2> ends{};
  FUZZ_CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  ::close(ends[1]);
  return ends[0];
}

/// Every answer has a status line and, but for the last one, ends where its length says.
void check_answers(std::string_view text, std::size_t requests) {
  std::size_t answers = 0;
  while (!text.empty()) {
    FUZZ_CHECK(text.starts_with("HTTP/1.1 "));
    const auto end = text.find("\r\n\r\n");
    FUZZ_CHECK(end != std::string_view::npos);
    const auto head = text.substr(0, end + 4);
    text.remove_prefix(end + 4);
    if (head.starts_with("HTTP/1.1 100")) continue;
    ++answers;
    if (head.find("X-Body: 3\r\n") != std::string_view::npos) {
      FUZZ_CHECK(text.starts_with("abc"));
      text.remove_prefix(3);
    }
  }
  FUZZ_CHECK(answers <= requests + 1);  // one more: a refused head
}

}  // namespace
}  // namespace thermo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thermo;
  fuzz::Input input(fuzz::text_of(data, size));
  const auto choice = input.byte();
  const auto sent = input.rest();
  static const int socket = fuzz::closed_socket();
  static const std::atomic<bool> stopping{false};

  fuzz::Client client(sent, (choice & 1U) != 0 ? 7 : 1U << 20U);
  std::size_t requests = 0;
  std::uint64_t body_bytes = 0;
  const net::Handler handler = [&](net::Exchange& exchange) {
    ++requests;
    const auto& request = exchange.request();
    FUZZ_CHECK(!request.method.empty() && !request.target.empty());
    for (const auto& [name, value] : request.headers) FUZZ_CHECK(request.header(name) != nullptr);
    if ((choice & 6U) == 0) {
      if (const auto body = exchange.read_all(1000)) {
        FUZZ_CHECK(body->size() <= 1000);
        body_bytes += body->size();
        if (!request.chunked) FUZZ_CHECK(body->size() == request.content_length);
      }
    } else if ((choice & 6U) == 2) {
      std::array<std::byte, 11> piece;
      for (;;) {
        const auto n = exchange.read_body(piece);
        if (!n || *n == 0) break;
        FUZZ_CHECK(*n <= piece.size());
        body_bytes += *n;
      }
    }
    FUZZ_CHECK(body_bytes <= sent.size());
    if ((choice & 8U) != 0) exchange.close((choice & 16U) != 0);
    const bool has_body = request.method != "HEAD";
    (void)exchange.respond(200, {{has_body ? "X-Body" : "X-None", "3"}, {"X-Echo", request.target}}, "abc");
  };
  std::atomic<bool> busy{false};
  net::ServerConnection(socket, client, stopping).serve(handler, busy);
  fuzz::check_answers(client.answers, requests);

  if (const auto head = net::parse_request_head(sent)) {
    FUZZ_CHECK(!head->request.method.empty() && !(head->request.chunked && head->request.has_length));
    for (const auto& [name, value] : head->request.headers) {
      FUZZ_CHECK(name.find_first_of("\r\n") == std::string::npos && value.find('\n') == std::string::npos);
    }
  } else {
    FUZZ_CHECK(head.error().code() == ErrorCode::kInvalidArgument);
  }
  return 0;
}
