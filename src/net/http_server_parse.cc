#include "net/http_server_parse.h"

#include <fmt/core.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>

namespace thermo::net {
namespace {

namespace http = boost::beast::http;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

}  // namespace

Result<ParsedHead> parse_request_head(std::string_view head) {
  http::request_parser<http::empty_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(kMaxHeadBytes) + 1024);
  // The body is not Beast's business: without this a Content-Length over 1 MiB is refused.
  parser.body_limit(boost::none);
  parser.eager(false);
  boost::system::error_code ec;
  std::size_t used = 0;
  // One call may stop after the request line; go on until the head is done.
  while (!parser.is_header_done() && used < head.size()) {
    const std::size_t n = parser.put(boost::asio::buffer(head.data() + used, head.size() - used), ec);
    if (ec && ec != http::error::need_more)
      return fail(ErrorCode::kInvalidArgument, fmt::format("bad request head: {}", ec.message()));
    if (n == 0) break;
    used += n;
  }
  if (!parser.is_header_done()) return fail(ErrorCode::kInvalidArgument, "bad request head: it ends in the middle");

  const auto& message = parser.get();
  ParsedHead out;
  out.request.method = std::string(message.method_string());
  out.request.target = std::string(message.target());
  for (const auto& field : message) {
    out.request.headers.emplace_back(lower(std::string_view(field.name_string().data(), field.name_string().size())),
                                     std::string(field.value()));
  }
  out.request.chunked = parser.chunked();
  if (const auto length = parser.content_length()) {
    out.request.has_length = true;
    out.request.content_length = *length;
  }
  out.keep_alive = parser.keep_alive() && message.version() >= 11;
  if (const std::string* expect = out.request.header("expect")) out.expects_continue = lower(*expect) == "100-continue";
  return out;
}

std::string_view reason_phrase(int status) {
  const auto known = http::int_to_status(static_cast<unsigned>(status));
  if (known == http::status::unknown) return "Unknown";
  const auto text = http::obsolete_reason(known);
  return {text.data(), text.size()};
}

}  // namespace thermo::net
