// Request bodies: read, unframed, and checked against every digest that came with them before anything is stored.

#include "net/sigv4.h"
#include "s3sim/aws_chunked.h"
#include "s3sim/checksum.h"
#include "s3sim/simulator.h"

namespace thermo::s3sim {
namespace {

constexpr std::uint64_t kMaxBody = 5ULL << 30;

std::string_view bare_checksum_name(std::string_view header) {
  constexpr std::string_view kPrefix = "x-amz-checksum-";
  if (!header.starts_with(kPrefix)) return {};
  header.remove_prefix(kPrefix.size());
  for (const auto name : kChecksums) {
    if (header == name) return header;
  }
  return {};
}

S3Error bad_digest(std::string_view what) {
  return {400, "BadDigest", fmt::format("The {} you specified did not match what we received.", what)};
}

}  // namespace

S3Result<std::string> Simulator::read_body_paced(Call& call) {
  const auto& http = call.exchange.request();
  if (!http.has_length && !http.chunked)
    return refuse(411, "MissingContentLength", "You must provide the Content-Length HTTP header.");
  if (http.content_length > kMaxBody)
    return refuse(400, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size");
  std::string body;
  body.resize(http.chunked ? 1 << 20 : http.content_length);
  std::size_t have = 0;
  const Delivery paced = delivery(call);
  paced.pacer.begin(Clock::system().now());
  for (;;) {
    if (http.chunked && have == body.size()) body.resize(body.size() * 2);
    if (have > kMaxBody) return refuse(400, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size");
    auto space = std::as_writable_bytes(std::span(body)).subspan(have);
    const auto n = call.exchange.read_body(space.first(std::min<std::uint64_t>(space.size(), pace_step(paced))));
    if (!n) {
      call.exchange.close(true);
      return refuse(400, "RequestTimeout",
                    "Your socket connection to the server was not read from or written to within the timeout period.");
    }
    if (*n == 0) break;
    have += *n;
    stats_.add_in(*n);
    if (!pace(paced, *n)) return refuse(503, "ServiceUnavailable", "The server stops.");
  }
  body.resize(have);
  call.begun = Clock::system().now();
  return body;
}

S3Result<void> Simulator::receive_body(Call& call) {
  auto raw = read_body_paced(call);
  if (!raw) return tl::unexpected<S3Error>(std::move(raw).error());
  const auto& http = call.exchange.request();
  Headers claimed;
  for (const auto& [name, value] : http.headers) {
    if (!bare_checksum_name(name).empty()) claimed.emplace_back(name, value);
  }
  const std::string* hash = http.header("x-amz-content-sha256");
  if (hash && hash->starts_with("STREAMING-")) {
    auto decoded = decode_aws_chunked(*raw);
    if (!decoded) return tl::unexpected<S3Error>(std::move(decoded).error());
    call.body = std::move(decoded->data);
    for (auto& trailer : decoded->trailers) {
      if (!bare_checksum_name(trailer.first).empty()) claimed.push_back(std::move(trailer));
    }
    const std::string* length = http.header("x-amz-decoded-content-length");
    if (length && *length != std::to_string(call.body.size()))
      return refuse(400, "IncompleteBody",
                    "You did not provide the number of bytes specified by the x-amz-decoded-content-length header");
  } else {
    call.body = std::move(*raw);
    if (hash && hash->size() == 64 && *hash != net::sha256_hex(call.body))
      return refuse(400, "XAmzContentSHA256Mismatch",
                    "The provided 'x-amz-content-sha256' header does not match what was computed.");
  }
  if (const std::string* given = http.header("content-md5"); given && *given != base64(md5(call.body)))
    return tl::unexpected<S3Error>(bad_digest("Content-MD5"));
  for (auto& [name, value] : claimed) {
    const auto algorithm = bare_checksum_name(name);
    if (value != base64(*checksum(algorithm, call.body))) return tl::unexpected<S3Error>(bad_digest(algorithm));
    call.checksums.emplace_back(name, value);
  }
  return {};
}

}  // namespace thermo::s3sim
