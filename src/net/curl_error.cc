#include "net/curl_error.h"

#include <fmt/format.h>

#include "base/units.h"

namespace thermo::net {
namespace {

std::string_view text_of(const Transfer& t, CURLcode code) {
  return t.error_text[0] != '\0' ? std::string_view(t.error_text.data()) : std::string_view(curl_easy_strerror(code));
}

// "after 100 of 200 bytes of the body", or "before any answer".
std::string progress_of(const Transfer& t) {
  if (!t.head_complete) return t.head_received == 0 ? "before any answer" : "in the answer's head";
  const auto* length = t.response.header("content-length");
  return fmt::format("body cut after {} of {} bytes", t.body_received, length != nullptr ? *length : "an unknown number of");
}

Error tls_error(const Transfer& t, CURLcode code, const std::string& peer) {
  const auto text = text_of(t, code);
  const auto has = [&](std::string_view what) { return text.find(what) != std::string_view::npos; };
  if (code == CURLE_SSL_CACERT_BADFILE) {
    return Error(ErrorCode::kTls, fmt::format("TLS to {}: the CA file cannot be read ({}): check --ca-bundle", peer, text));
  }
  if (has("subject name") || has("host name")) {
    return Error(ErrorCode::kTls,
                 fmt::format("TLS: the certificate of {} is for another name ({}): use the name in the certificate in "
                             "--endpoint, or have the certificate cover this one",
                             peer, text));
  }
  if (has("wrong version number")) {
    return Error(ErrorCode::kTls,
                 fmt::format("{} does not speak TLS ({}): write http:// in --endpoint if that is meant", peer, text));
  }
  if (code == CURLE_PEER_FAILED_VERIFICATION) {
    return Error(ErrorCode::kTls,
                 fmt::format("TLS: the certificate of {} is not trusted ({}): give the CA that signed it with --ca-bundle FILE",
                             peer, text));
  }
  if (has("SSL_ERROR_SYSCALL") || has("Connection reset") || has("unexpected eof")) {
    return Error(ErrorCode::kUnavailable, fmt::format("{} closed the connection in the TLS handshake ({})", peer, text));
  }
  return Error(ErrorCode::kTls, fmt::format("TLS handshake with {} failed: {}", peer, text));
}

}  // namespace

std::string host_and_port(std::string_view url) {
  const std::size_t scheme = url.find("://");
  const bool tls = url.starts_with("https");
  std::string_view rest = scheme == std::string_view::npos ? url : url.substr(scheme + 3);
  rest = rest.substr(0, rest.find_first_of("/?"));
  const std::size_t bracket = rest.rfind(']');
  const bool has_port = rest.find(':', bracket == std::string_view::npos ? 0 : bracket) != std::string_view::npos;
  return has_port ? std::string(rest) : fmt::format("{}:{}", rest, tls ? 443 : 80);
}

Error curl_error(const Transfer& t, CURLcode code, const HttpClientOptions& options) {
  const std::string peer = host_and_port(t.request.url);
  const auto text = text_of(t, code);
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return Error(
          ErrorCode::kUnavailable,
          fmt::format("cannot find the address of {} ({}): check the host name in --endpoint, the bucket name and the DNS", peer,
                      text));
    case CURLE_COULDNT_RESOLVE_PROXY:
      return Error(ErrorCode::kUnavailable, fmt::format("cannot find the proxy ({}): check http_proxy and https_proxy", text));
    case CURLE_COULDNT_CONNECT:
      return Error(
          ErrorCode::kUnavailable,
          fmt::format("cannot connect to {} ({}): check that the store runs and that --endpoint has the right host and port",
                      peer, text));
    case CURLE_OPERATION_TIMEDOUT:
      return Error(ErrorCode::kTimeout, fmt::format("no connection to {} within {} ({}): check --endpoint, routes and firewalls",
                                                    peer, format_duration(options.connect_timeout), text));
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_USE_SSL_FAILED: return tls_error(t, code, peer);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      if (text.find("HTTP/0.9") != std::string_view::npos) {
        return Error(ErrorCode::kUnavailable,
                     fmt::format("{} answered with something that is not HTTP: check the port in --endpoint", peer));
      }
      return Error(ErrorCode::kInvalidArgument, fmt::format("not a usable URL for {}: {}", peer, text));
    case CURLE_OUT_OF_MEMORY: return Error(ErrorCode::kInternal, fmt::format("out of memory in the exchange with {}", peer));
    default:
      // Cut, reset, garbage instead of HTTP: all of it may be gone with the next connection.
      return Error(ErrorCode::kUnavailable, fmt::format("{}: {} ({})", peer, progress_of(t), text));
  }
}

Error stall_error(const Transfer& t, Nanos stalled) {
  return Error(ErrorCode::kTimeout,
               fmt::format("{}: no byte for {}, {}", host_and_port(t.request.url), format_duration(stalled), progress_of(t)));
}

}  // namespace thermo::net
