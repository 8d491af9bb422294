// Parsing what the upstream answers, and moving its bodies on.

#include <algorithm>
#include <charconv>

#include "s3sim/upstream.h"

namespace thermo::s3sim {
namespace {

bool same_name(std::string_view name, std::string_view lower) {
  return std::equal(name.begin(), name.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b; });
}

Error bad_head() { return Error(ErrorCode::kUnavailable, "the upstream's answer is no HTTP"); }

class UpstreamBody final : public BodySource {
 public:
  UpstreamBody(Upstream& upstream, const ResponseHead& head)
      : upstream_(upstream),
        chunked_(head.chunked),
        keep_alive_(head.keep_alive),
        left_(head.length < 0 ? UINT64_MAX : static_cast<std::uint64_t>(head.length)),
        until_close_(head.length < 0 && !head.chunked) {
    ended_ = !chunked_ && left_ == 0;
  }
  UpstreamBody(const UpstreamBody&) = delete;
  UpstreamBody& operator=(const UpstreamBody&) = delete;
  ~UpstreamBody() override {
    if (!ended_ || !keep_alive_ || until_close_) upstream_.disconnect();
  }

  Result<std::size_t> move(net::Exchange& exchange, std::uint64_t max) override {
    if (ended_) return 0;
    const bool can_splice = !chunked_ && splices_ && exchange.socket() >= 0;
    if (upstream_.buffered().empty() && can_splice) {
      if (!head_left_) {
        head_left_ = true;
        TRY(exchange.send_body({}));
      }
      auto n = upstream_.splice_to(exchange.socket(), std::min(left_, max));
      if (n) {
        exchange.note_sent(*n);
        return took(*n);
      }
      if (n.error().code() != ErrorCode::kNotSupported) return n;
      splices_ = false;
    }
    if (upstream_.buffered().empty()) {
      TRY_ASSIGN(const std::size_t got, upstream_.fill());
      if (got == 0) return took(0);
    }
    const std::size_t n = take_from_buffer(max);
    auto sent = exchange.send_body(upstream_.buffered().first(n));
    head_left_ = true;
    upstream_.consume(n);
    if (!sent) return fail(std::move(sent).error());
    return took(n);
  }

  Result<std::size_t> read(std::span<std::byte> dst) override {
    if (ended_ || dst.empty()) return 0;
    if (upstream_.buffered().empty()) {
      TRY_ASSIGN(const std::size_t got, upstream_.fill());
      if (got == 0) return took(0);
    }
    const std::size_t n = take_from_buffer(dst.size());
    std::copy_n(upstream_.buffered().begin(), n, dst.begin());
    upstream_.consume(n);
    return took(n);
  }

 private:
  /// How many buffered bytes belong to the body, at most `max`.
  std::size_t take_from_buffer(std::uint64_t max) {
    const auto bytes = upstream_.buffered();
    const std::size_t n = std::min<std::uint64_t>({bytes.size(), max, left_});
    return chunked_ ? scanner_.feed(bytes.first(n)) : n;
  }

  Result<std::size_t> took(std::size_t n) {
    if (chunked_) {
      ended_ = scanner_.done();
    } else if (!until_close_) {
      left_ -= n;
      ended_ = left_ == 0;
    } else {
      ended_ = n == 0;
    }
    if (n == 0 && !ended_) return fail(ErrorCode::kUnavailable, "the upstream closed the connection in the middle of a body");
    return n;
  }

  Upstream& upstream_;
  const bool chunked_;
  const bool keep_alive_;
  std::uint64_t left_;
  const bool until_close_;
  bool ended_ = false;
  bool splices_ = true;
  bool head_left_ = false;  ///< the answer's head is on its way, so bytes may go past the exchange
  ChunkScanner scanner_;
};

}  // namespace

Result<ResponseHead> parse_response_head(std::string_view head) {
  ResponseHead out;
  if (!head.starts_with("HTTP/1.") || head.size() < 12) return fail(bad_head());
  const bool old = head[7] == '0';
  if (std::from_chars(head.data() + 9, head.data() + 12, out.status).ec != std::errc() || out.status < 100)
    return fail(bad_head());
  out.keep_alive = !old;
  std::size_t at = head.find("\r\n");
  while (at != std::string_view::npos && at + 2 < head.size()) {
    const std::size_t begin = at + 2;
    at = head.find("\r\n", begin);
    const std::string_view line = head.substr(begin, at - begin);
    if (line.empty()) break;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return fail(bad_head());
    const std::string_view name = line.substr(0, colon);
    std::string_view value = line.substr(colon + 1);
    while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
    while (value.ends_with(' ') || value.ends_with('\t')) value.remove_suffix(1);
    if (same_name(name, "content-length")) {
      const auto [ptr, ec] = std::from_chars(value.data(), value.data() + value.size(), out.length);
      if (ec != std::errc() || ptr != value.data() + value.size() || out.length < 0) return fail(bad_head());
    } else if (same_name(name, "connection")) {
      if (same_name(value, "close")) out.keep_alive = false;
      if (same_name(value, "keep-alive")) out.keep_alive = true;
    } else if (!same_name(name, "keep-alive")) {
      if (same_name(name, "transfer-encoding") && same_name(value, "chunked")) out.chunked = true;
      out.headers.emplace_back(name, value);
    }
  }
  if (out.chunked) out.length = -1;
  return out;
}

std::size_t ChunkScanner::feed(std::span<const std::byte> bytes) {
  std::size_t at = 0;
  while (at < bytes.size() && state_ != State::kDone) {
    if (state_ == State::kData) {
      const std::uint64_t n = std::min<std::uint64_t>(left_, bytes.size() - at);
      at += n;
      left_ -= n;
      if (left_ == 0) state_ = State::kDataEnd;
      continue;
    }
    const char c = static_cast<char>(bytes[at++]);
    switch (state_) {
      case State::kSize:
      case State::kExtension:
        if (c == '\r') {
          state_ = State::kSizeEnd;
        } else if (c == ';' || state_ == State::kExtension) {
          state_ = State::kExtension;
        } else {
          const int lower = c | 0x20;
          left_ = left_ * 16 + static_cast<std::uint64_t>(c >= '0' && c <= '9'           ? c - '0'
                                                          : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                                                                         : 0);
        }
        break;
      case State::kSizeEnd:
        line_ = 0;
        state_ = left_ == 0 ? State::kTrailer : State::kData;
        break;
      case State::kDataEnd:
        if (c == '\n') state_ = State::kSize;
        break;
      case State::kTrailer:
        if (c == '\r') state_ = State::kTrailerEnd;
        else ++line_;
        break;
      case State::kTrailerEnd:
        state_ = line_ == 0 ? State::kDone : State::kTrailer;
        line_ = 0;
        break;
      case State::kData:
      case State::kDone: break;
    }
  }
  return at;
}

std::unique_ptr<BodySource> upstream_body(Upstream& upstream, const ResponseHead& head) {
  return std::make_unique<UpstreamBody>(upstream, head);
}

}  // namespace thermo::s3sim
