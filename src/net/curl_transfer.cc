#include "net/curl_transfer.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "net/sigv4_canonical.h"

namespace thermo::net {
namespace {

constexpr std::size_t kMaxCollected = 16U << 20U;
constexpr std::size_t kMaxHead = 256U << 10U;
// 8 MiB bodies cost a third less CPU through a large buffer, 64 KiB ones half again as much: the size follows the body.
constexpr long kLargeBuffer = 128L << 10U;
constexpr long kSmallBuffer = 32L << 10U;

// "HTTP/1.1 206 Partial Content" -> 206; 0 when it is not a status line.
int status_of(std::string_view line) {
  if (!line.starts_with("HTTP/")) return 0;
  const std::size_t space = line.find(' ');
  int status = 0;
  if (space == std::string_view::npos) return 0;
  const auto parsed = std::from_chars(line.data() + space + 1, line.data() + line.size(), status);
  return parsed.ec == std::errc() ? status : 0;
}

void complete_head(Transfer& t) {
  t.head_complete = true;
  char* ip = nullptr;
  long port = 0;
  curl_easy_getinfo(t.easy, CURLINFO_PRIMARY_IP, &ip);
  curl_easy_getinfo(t.easy, CURLINFO_PRIMARY_PORT, &port);
  if (ip != nullptr) t.response.remote = std::string(ip) + ':' + std::to_string(port);
  curl_off_t first_byte_us = 0;
  curl_easy_getinfo(t.easy, CURLINFO_STARTTRANSFER_TIME_T, &first_byte_us);
  t.response.first_byte_ms = static_cast<double>(first_byte_us) / 1000.0;
  if (t.router != nullptr) t.sink = t.router->route(t.response);
  if (t.sink == nullptr && t.request.method != "HEAD") {
    curl_off_t length = 0;
    curl_easy_getinfo(t.easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (length > 0) t.response.body.reserve(std::min(static_cast<std::size_t>(length), kMaxCollected));
  }
}

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) {
  auto& t = *static_cast<Transfer*>(user);
  const std::size_t length = size * count;
  t.head_received += length;
  if (t.head_received > kMaxHead) {
    t.failure = Error(ErrorCode::kUnavailable, "the answer's head is larger than 256 KiB").with_retry(RetryClass::kNever);
    return 0;
  }
  std::string_view line(data, length);
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (t.head_complete) return length;  // trailers of a chunked body
  if (const int status = status_of(line); status != 0) {
    t.response.status = status;
    t.response.headers.clear();
  } else if (line.empty()) {
    if (t.response.status >= 200) complete_head(t);
  } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
    t.response.headers.emplace_back(lower_ascii(line.substr(0, colon)), fold_spaces(line.substr(colon + 1)));
  }
  return length;
}

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) {
  auto& t = *static_cast<Transfer*>(user);
  const std::size_t length = size * count;
  t.body_received += length;
  if (t.sink != nullptr) {
    auto written = t.sink->write({reinterpret_cast<const std::byte*>(data), length});
    if (written) return length;
    t.failure = written.error();
    return 0;
  }
  if (t.response.body.size() + length > kMaxCollected) {
    t.failure = Error(ErrorCode::kUnavailable, "the answer's body is larger than 16 MiB").with_retry(RetryClass::kNever);
    return 0;
  }
  t.response.body.append(data, length);
  return length;
}

bool append_header(Transfer& t, const std::string& line) {
  auto* list = curl_slist_append(t.header_list, line.c_str());
  if (list == nullptr) return false;
  t.header_list = list;
  return true;
}

Result<void> set_headers(Transfer& t, bool with_body) {
  bool has_type = false;
  for (const auto& [name, value] : t.request.headers) {
    constexpr std::string_view kForbidden("\r\n\0", 3);
    if (name.empty() || name.find_first_of(kForbidden) != std::string::npos ||
        value.find_first_of(kForbidden) != std::string::npos) {
      return fail(ErrorCode::kInvalidArgument, "the value of header '" + name + "' holds a line break");
    }
    has_type = has_type || lower_ascii(name) == "content-type";
    // "Name;" is libcurl's way to write a header without a value; "Name:" would remove it.
    if (!append_header(t, value.empty() ? name + ';' : name + ": " + value)) return fail(ErrorCode::kInternal, "out of memory");
  }
  // What libcurl would add by itself: a wait of one second for servers that ignore Expect, a form's content type, a wrong Accept.
  bool ok = append_header(t, "Expect:") && append_header(t, "Accept:");
  if (with_body && !has_type) ok = ok && append_header(t, "Content-Type:");
  if (!ok) return fail(ErrorCode::kInternal, "out of memory");
  curl_easy_setopt(t.easy, CURLOPT_HTTPHEADER, t.header_list);
  return {};
}

void set_method(Transfer& t, bool with_body) {
  CURL* easy = t.easy;
  const auto& request = t.request;
  if (with_body) {
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    // Not copied, and libcurl can start over with it on another connection.
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.empty() ? "" : reinterpret_cast<const char*>(request.body.data()));
    if (request.body.size() >= kLargeBody) curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, kLargeBuffer);
    if (request.method != "POST") curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  } else if (request.method == "HEAD") {
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
  } else {
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    if (request.method != "GET") curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

// Loopback never goes through a proxy, whatever the environment says.
const std::string& no_proxy() {
  static const std::string kList = [] {
    std::string list = "localhost,127.0.0.1,::1";
    for (const char* name : {"no_proxy", "NO_PROXY"}) {
      if (const char* more = std::getenv(name); more != nullptr && *more != '\0') return list + ',' + more;
    }
    return list;
  }();
  return kList;
}

void set_transport(Transfer& t, const HttpClientOptions& options, CURLSH* share) {
  CURL* easy = t.easy;
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy, CURLOPT_DNS_SHUFFLE_ADDRESSES, 1L);
  // A resolver thread that hangs must not hold up the loop when its transfer is given up.
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(easy, CURLOPT_NOPROXY, no_proxy().c_str());
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(std::chrono::ceil<Millis>(options.connect_timeout).count()));
  const auto idle = std::chrono::ceil<std::chrono::seconds>(options.max_idle).count();
  curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, static_cast<long>(idle > 0 ? idle : 1));
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, t.request.expected_body >= kLargeBody ? kLargeBuffer : kSmallBuffer);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, options.user_agent.c_str());
  if (!options.ca_bundle.empty()) {
    curl_easy_setopt(easy, CURLOPT_CAINFO, options.ca_bundle.c_str());
    curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
  }
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, options.verify_tls ? 1L : 0L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, options.verify_tls ? 2L : 0L);
  curl_easy_setopt(easy, CURLOPT_SHARE, share);
}

}  // namespace

Result<void> prepare(Transfer& t, const HttpClientOptions& options, CURLSH* share) {
  const bool with_body = t.request.method == "PUT" || t.request.method == "POST";
  set_transport(t, options, share);
  set_method(t, with_body);
  TRY(set_headers(t, with_body));
  curl_easy_setopt(t.easy, CURLOPT_URL, t.request.url.c_str());
  curl_easy_setopt(t.easy, CURLOPT_PRIVATE, &t);
  curl_easy_setopt(t.easy, CURLOPT_ERRORBUFFER, t.error_text.data());
  curl_easy_setopt(t.easy, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(t.easy, CURLOPT_HEADERDATA, &t);
  curl_easy_setopt(t.easy, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(t.easy, CURLOPT_WRITEDATA, &t);
  return {};
}

void forget_answer(Transfer& t) {
  t.response = {};
  t.sink = nullptr;
  t.head_complete = false;
  t.head_received = 0;
  t.error_text[0] = '\0';
  t.progress = -1;
}

}  // namespace thermo::net
