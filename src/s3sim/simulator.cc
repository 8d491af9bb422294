#include "s3sim/simulator.h"

#include <algorithm>
#include <charconv>

#include "base/log.h"
#include "s3sim/xml.h"

namespace thermo::s3sim {
namespace {

bool equals_lower(std::string_view name, std::string_view lower) {
  return std::equal(name.begin(), name.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b; });
}

std::string* find_header(Headers& headers, std::string_view lower) {
  for (auto& [name, value] : headers) {
    if (equals_lower(name, lower)) return &value;
  }
  return nullptr;
}

/// Another text of the same length and form: what a digest looks like that belongs to other bytes.
void spoil(std::string& value) {
  for (char& c : value) {
    if (c == '"') continue;
    c = c == '0' ? '1' : '0';
    return;
  }
}

/// The body as text, transfer chunks removed: only for answers that a fault rewrites.
std::optional<std::string> collect(Answer& answer) {
  std::string raw;
  std::vector<std::byte> piece(64 * 1024);
  for (;;) {
    const auto n = answer.body->read(piece);
    if (!n) return std::nullopt;
    if (*n == 0) break;
    raw.append(reinterpret_cast<const char*>(piece.data()), *n);
  }
  if (!find_header(answer.headers, "transfer-encoding")) return raw;
  std::erase_if(answer.headers, [](const Header& h) { return equals_lower(h.first, "transfer-encoding"); });
  std::string text;
  std::string_view rest = raw;
  while (true) {
    std::size_t size = 0;
    const std::size_t line = rest.find("\r\n");
    if (line == std::string_view::npos) return text;
    std::from_chars(rest.data(), rest.data() + line, size, 16);
    if (size == 0) return text;
    text += rest.substr(line + 2, size);
    rest.remove_prefix(std::min(rest.size(), line + 2 + size + 2));
  }
}

void cut_element(std::string& text, std::string_view open, std::string_view close) {
  const std::size_t begin = text.rfind(open);
  if (begin == std::string::npos) return;
  const std::size_t end = text.find(close, begin);
  if (end != std::string::npos) text.erase(begin, end + close.size() - begin);
}

}  // namespace

std::string truncate_listing(std::string page) {
  if (page.find("<Contents>") != std::string::npos) {
    cut_element(page, "<Contents>", "</Contents>");
  } else {
    cut_element(page, "<CommonPrefixes>", "</CommonPrefixes>");
  }
  cut_element(page, "<NextContinuationToken>", "</NextContinuationToken>");
  cut_element(page, "<NextMarker>", "</NextMarker>");
  if (const std::size_t at = page.find("<KeyCount>"); at != std::string::npos) {
    const std::size_t end = page.find('<', at + 10);
    int count = 0;
    std::from_chars(page.data() + at + 10, page.data() + end, count);
    if (end != std::string::npos && count > 0) page.replace(at + 10, end - at - 10, std::to_string(count - 1));
  }
  if (const std::size_t at = page.find("<IsTruncated>true<"); at != std::string::npos)
    page.replace(at, 18, "<IsTruncated>false<");
  return page;
}

Simulator::Simulator(Options options, std::vector<FaultRule> rules, std::unique_ptr<Backend> backend,
                     std::optional<UpstreamAddress> upstream)
    : options_(std::move(options)),
      live_{options_.first_byte, options_.per_connection, options_.total, options_.clock_offset},
      faults_(std::move(rules), options_.seed),
      backend_(std::move(backend)),
      upstream_(std::move(upstream)) {}

LiveOptions Simulator::live() const {
  MutexLock lock(mutex_);
  return live_;
}

Delivery Simulator::delivery(Call& call) {
  return {call.exchange,   stopper_,
          stats_,          call.session.pacer,
          total_,          call.live.per_connection,
          call.live.total, call.begun + call.live.first_byte};
}

void Simulator::handle(net::Exchange& exchange) {
  const std::string_view target = exchange.request().target;
  if (target.starts_with("/_sim/")) return admin(exchange, target.substr(6));
  auto& state = exchange.connection_state();
  if (!state) state = std::make_shared<Session>();
  static std::atomic<std::uint64_t> next_id{1};
  Call call{exchange,
            {},
            live(),
            *static_cast<Session*>(state.get()),
            fmt::format("SIM{:013X}", next_id.fetch_add(1)),
            Clock::system().now(),
            {},
            {}};
  stats_.begin();
  serve(call);
  stats_.end();
}

void Simulator::serve(Call& call) {
  auto parsed = parse_s3_request(call.exchange.request(),
                                 [this](const std::string& name) { return backend_ && backend_->has_bucket(name); });
  if (!parsed) return deliver(delivery(call), error_answer(call, parsed.error()), std::nullopt);
  call.request = std::move(*parsed);
  stats_.count(call.request.op);

  Answer answer;
  const auto early = faults_.before(call.request.op);
  if (early) stats_.count(early->kind);
  if (!answer_or_fault(call, early, answer)) return;

  const auto success = answer.status >= 200 && answer.status < 300;
  AnswerFacts facts;
  facts.success = success;
  facts.has_body = answer.body != nullptr && answer.length != 0;
  facts.has_etag = find_header(answer.headers, "etag") != nullptr;
  facts.has_checksum = std::any_of(answer.headers.begin(), answer.headers.end(), [](const Header& h) {
    return h.first.size() > 15 && equals_lower(std::string_view(h.first).substr(0, 15), "x-amz-checksum-") &&
           !equals_lower(h.first, "x-amz-checksum-type");
  });
  const auto late = faults_.after(call.request.op, facts);
  if (late) {
    stats_.count(late->kind);
    if (late->kind == FaultKind::kPutLost) {
      answer.body.reset();
      return call.exchange.close(false);
    }
    apply_to_answer(call, *late, answer);
  }
  if (!upstream_) finish_headers(call, answer);
  if (call.request.op == Op::kGet) record_get(call, answer);
  Delivery how = delivery(call);
  if (early && early->kind == FaultKind::kSlowFirst) how.not_before += early->duration;
  deliver(how, std::move(answer), late);
}

bool Simulator::answer_or_fault(Call& call, const std::optional<Fault>& fault, Answer& answer) {
  Nanos stale_by{0};
  if (fault) {
    switch (fault->kind) {
      case FaultKind::kDrop: call.exchange.close(false); return false;
      case FaultKind::kSlowFirst: break;
      case FaultKind::kStaleList: stale_by = fault->duration; break;
      default: answer = error_answer(call, fault_error(call, *fault)); return true;
    }
  }
  S3Result<Answer> answered = tl::unexpected<S3Error>(S3Error{});
  if (auto allowed = authenticate(call); !allowed) {
    answered = tl::unexpected<S3Error>(std::move(allowed).error());
  } else {
    answered = upstream_ ? forward(call) : dispatch(call, stale_by);
  }
  answer = answered ? std::move(*answered) : error_answer(call, std::move(answered).error());
  return true;
}

S3Result<Answer> Simulator::dispatch(Call& call, Nanos stale_by) {
  switch (call.request.op) {
    case Op::kGet:
    case Op::kHead: return get_object(call);
    case Op::kList: return list_objects(call, stale_by);
    case Op::kPut: return put_object(call);
    case Op::kDelete: return delete_object(call);
    case Op::kDeleteMany: return delete_many(call);
    case Op::kCopy: return copy_object(call);
    case Op::kListBuckets: return list_buckets();
    case Op::kHeadBucket:
    case Op::kBucketInfo:
    case Op::kCreateBucket:
    case Op::kDeleteBucket: return bucket_op(call);
    case Op::kCreateUpload: return create_upload(call);
    case Op::kPart:
    case Op::kPartCopy: return upload_part(call);
    case Op::kComplete: return complete_upload(call);
    case Op::kAbort: return abort_upload(call);
    case Op::kListParts: return list_parts(call);
    case Op::kListUploads: return list_uploads(call);
    case Op::kUnsupported: break;
  }
  return refuse(501, "NotImplemented", "A header or query you provided implies functionality that is not implemented");
}

S3Error Simulator::fault_error(const Call& call, const Fault& fault) const {
  switch (fault.kind) {
    case FaultKind::kSlowDown: {
      S3Error error{503, "SlowDown", "Please reduce your request rate."};
      const auto whole = std::chrono::ceil<std::chrono::seconds>(fault.duration).count();
      if (whole > 0) error.headers.emplace_back("Retry-After", std::to_string(whole));
      return error;
    }
    case FaultKind::kError403: return {403, "AccessDenied", "Access Denied"};
    case FaultKind::kConflict409:
      return {409, "ConditionalRequestConflict",
              "The conditional request cannot succeed due to a conflicting operation against this resource."};
    case FaultKind::kError200: return {200, "InternalError", "We encountered an internal error. Please try again."};
    case FaultKind::kExpired: return {400, "ExpiredToken", "The provided token has expired."};
    case FaultKind::kRedirect301:
    case FaultKind::kRedirect307:
    case FaultKind::kRegion400: {
      const std::size_t slash = fault.text.find('/');
      const std::string where = fault.text.empty() ? "us-west-2" : fault.text.substr(0, slash);
      const std::string* asked = call.header("host");
      const std::string host = slash == std::string::npos ? (asked ? *asked : std::string()) : fault.text.substr(slash + 1);
      S3Error error{301, "PermanentRedirect",
                    "The bucket you are attempting to access must be addressed using the specified endpoint."};
      if (fault.kind == FaultKind::kRedirect307)
        error = {307, "TemporaryRedirect", "Please re-send this request to the specified temporary endpoint."};
      if (fault.kind == FaultKind::kRegion400) {
        error = {400, "AuthorizationHeaderMalformed",
                 fmt::format("The authorization header is malformed; the region is wrong; expecting '{}'", where)};
        error.fields = {{"Region", where}};
      } else {
        error.fields = {{"Endpoint", host}, {"Bucket", call.request.bucket}};
        // Permanent redirects of S3 come without Location, so that nobody follows them without signing anew.
        if (fault.kind == FaultKind::kRedirect307)
          error.headers.emplace_back("Location", fmt::format("http{}://{}{}", options_.tls_key.empty() ? "" : "s", host,
                                                             call.exchange.request().target));
      }
      error.headers.emplace_back("x-amz-bucket-region", where);
      return error;
    }
    default: return {500, "InternalError", "We encountered an internal error. Please try again."};
  }
}

void Simulator::apply_to_answer(Call& call, const Fault& fault, Answer& answer) {
  switch (fault.kind) {
    case FaultKind::kPutAfter:
      answer = error_answer(call, {500, "InternalError", "We encountered an internal error. Please try again."});
      break;
    case FaultKind::kEtag: spoil(*find_header(answer.headers, "etag")); break;
    case FaultKind::kChecksum:
      for (const auto name : {"crc32", "crc32c", "crc64nvme", "sha1", "sha256"}) {
        if (auto* value = find_header(answer.headers, std::string("x-amz-checksum-") + name)) spoil(*value);
      }
      break;
    case FaultKind::kTruncatedList:
    case FaultKind::kReset:
    case FaultKind::kCut:
    case FaultKind::kStall:
    case FaultKind::kFlip: {
      // What has a known length is left alone on its way; a page that is to be rewritten, or a chunked body, is collected first.
      if (fault.kind != FaultKind::kTruncatedList && answer.length >= 0) break;
      auto text = collect(answer);
      if (!text) {
        answer = error_answer(call, {502, "BadGateway", "The upstream's answer ended too early"});
        break;
      }
      if (fault.kind == FaultKind::kTruncatedList) *text = truncate_listing(std::move(*text));
      answer.length = static_cast<std::int64_t>(text->size());
      answer.body = text_body(std::move(*text));
      break;
    }
    default: break;
  }
}

void Simulator::record_get(const Call& call, const Answer& answer) {
  if (answer.status != 200 && answer.status != 206) return;
  GetRecord record{call.request.key, 0, static_cast<std::uint64_t>(std::max<std::int64_t>(answer.length, 0))};
  if (answer.status == 206) {
    for (const auto& [name, value] : answer.headers) {
      if (!equals_lower(name, "content-range") || !value.starts_with("bytes ")) continue;
      std::from_chars(value.data() + 6, value.data() + value.size(), record.offset);
    }
  }
  stats_.record(std::move(record));
}

void Simulator::finish_headers(const Call& call, Answer& answer) const {
  answer.headers.emplace_back("x-amz-request-id", call.request_id);
  answer.headers.emplace_back("x-amz-id-2", "s3sim-" + call.request_id);
  answer.headers.emplace_back("Date", http_time(wall(call)));
  answer.headers.emplace_back("Server", "s3sim");
}

Answer Simulator::error_answer(const Call& call, S3Error error) const {
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error>" + xml_element("Code", error.code) +
                    xml_element("Message", error.message);
  for (const auto& [name, value] : error.fields) out += xml_element(name, value);
  // Raw bytes of a key need not be text: the path as it was sent is.
  out += xml_element("Resource", call.request.path) + xml_element("RequestId", call.request_id) +
         xml_element("HostId", "s3sim-" + call.request_id);
  Answer answer = Answer::xml(error.status, out + "</Error>");
  for (auto& header : error.headers) answer.headers.push_back(std::move(header));
  if (upstream_) finish_headers(call, answer);
  return answer;
}

}  // namespace thermo::s3sim
