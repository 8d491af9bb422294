// What s3sim makes of a parsed request: target, Host, ranges, conditions, aws-chunked bodies. First line: method; second: target;
// third: Host; fourth: Range; fifth: an ETag condition; the rest: a body.

#include "fuzz/fuzz.h"
#include "s3sim/aws_chunked.h"
#include "s3sim/conditional.h"
#include "s3sim/request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thermo;
  fuzz::Input input(fuzz::text_of(data, size));
  net::ServerRequest http;
  http.method = input.line();
  http.target = input.line();
  http.headers.emplace_back("host", std::string(input.line()));
  const auto range = input.line();
  const auto condition = input.line();
  const auto body = input.rest();

  for (const bool exists : {false, true}) {
    const auto request = s3sim::parse_s3_request(http, [&](const std::string&) { return exists; });
    if (!request) {
      FUZZ_CHECK(request.error().status == 400);
      continue;
    }
    FUZZ_CHECK(request->path.starts_with('/') && !s3sim::to_string(request->op).empty());
    const bool of_object = request->op == s3sim::Op::kGet || request->op == s3sim::Op::kPut || request->op == s3sim::Op::kDelete;
    if (of_object) FUZZ_CHECK(!request->bucket.empty() && !request->key.empty());
  }
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1000}, UINT64_MAX}) {
    const auto span = s3sim::resolve_range(range, bytes);
    if (!span) continue;
    FUZZ_CHECK(span->offset <= bytes && span->length <= bytes - span->offset);
    FUZZ_CHECK(span->partial ? span->length > 0 : span->length == bytes);
  }
  FUZZ_CHECK(s3sim::etag_matches("*", "\"a\""));
  if (s3sim::etag_matches(condition, "\"5d41402abc4b2a76b9719d911017c592\"")) {
    FUZZ_CHECK(condition.find('*') != std::string_view::npos ||
               condition.find("5d41402abc4b2a76b9719d911017c592") != std::string_view::npos);
  }
  (void)s3sim::parse_http_time(condition);
  if (const auto decoded = s3sim::decode_aws_chunked(body)) {
    FUZZ_CHECK(decoded->data.size() <= body.size());
    for (const auto& [name, value] : decoded->trailers)
      FUZZ_CHECK(name.find(':') == std::string::npos && value.size() <= body.size());
  } else {
    FUZZ_CHECK(decoded.error().status == 400);
  }
  return 0;
}
