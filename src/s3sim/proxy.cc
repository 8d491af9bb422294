// Proxy mode: the request goes to the upstream as it came, the answer comes back as it came.

#include "net/sigv4.h"
#include "s3sim/simulator.h"

namespace thermo::s3sim {
namespace {

constexpr std::size_t kPiece = 256 * 1024;

S3Error gateway_error(const Error& error) { return {502, "BadGateway", std::string(error.message())}; }

std::string request_head(const net::ServerRequest& request) {
  std::string head = request.method + " " + request.target + " HTTP/1.1\r\n";
  for (const auto& [name, value] : request.headers) {
    // About this hop only. The Expect of the client was ours to answer; a body that is on its way needs no leave.
    if (name == "connection" || name == "keep-alive" || name == "proxy-connection" || name == "expect") continue;
    head += name + ": " + value + "\r\n";
  }
  return head + "\r\n";
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

}  // namespace

S3Result<Answer> Simulator::forward(Call& call) {
  auto& session = call.session;
  const auto& http = call.exchange.request();
  if (!session.upstream) session.upstream = std::make_unique<Upstream>(stopper_);
  Upstream& upstream = *session.upstream;
  const std::string head = request_head(http);
  const bool has_body = http.chunked || http.content_length > 0;

  for (int attempt = 0;; ++attempt) {
    bool reused = false;
    if (auto ok = upstream.connect(*upstream_, reused); !ok) return tl::unexpected<S3Error>(gateway_error(ok.error()));
    auto sent = upstream.send(bytes_of(head));
    if (sent && has_body) {
      std::vector<std::byte> piece(kPiece);
      const Delivery paced = delivery(call);
      paced.pacer.begin(Clock::system().now());
      while (true) {
        const auto n = call.exchange.read_body(std::span(piece).first(std::min<std::uint64_t>(kPiece, pace_step(paced))));
        if (!n) {  // the client left in the middle: so does the upstream's request
          upstream.disconnect();
          call.exchange.close(true);
          return tl::unexpected<S3Error>(gateway_error(n.error()));
        }
        stats_.add_in(*n);
        if (*n > 0 && !pace(paced, *n)) break;
        if (http.chunked) sent = upstream.send(bytes_of(*n > 0 ? fmt::format("{:x}\r\n", *n) : std::string("0\r\n\r\n")));
        if (sent && *n > 0) sent = upstream.send(std::span(piece).first(*n));
        if (sent && http.chunked && *n > 0) sent = upstream.send(bytes_of("\r\n"));
        // An upstream that closes early has often said why: its answer is read below.
        if (*n == 0 || !sent) break;
      }
      call.begun = Clock::system().now();
    }
    auto answered = upstream.read_head();
    if (!answered) {
      upstream.disconnect();
      // The upstream closed an idle connection just as it was used again: nothing was served, so asking anew is safe.
      if (reused && !has_body && attempt == 0) continue;
      return tl::unexpected<S3Error>(gateway_error(answered.error()));
    }
    Answer answer;
    answer.status = answered->status;
    answer.headers = std::move(answered->headers);
    answer.length = answered->length;
    const bool bodyless = http.method == "HEAD" || answer.status == 204 || answer.status == 304;
    if (bodyless) {
      if (!answered->keep_alive || !sent) upstream.disconnect();
      return answer;
    }
    if (!sent) answered->keep_alive = false;
    answer.close = answered->length < 0 && !answered->chunked;
    answer.body = upstream_body(upstream, *answered);
    return answer;
  }
}

}  // namespace thermo::s3sim
