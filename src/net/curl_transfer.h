#pragma once
// One exchange as libcurl sees it: options of the easy handle, and the callbacks that take the answer apart.

#include <curl/curl.h>

#include <array>
#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "net/http_client.h"

namespace thermo::net {

/// Lives on the stack of the caller, who waits for `done`; between submission and `done` everything but the guarded members
/// belongs to the loop's thread.
struct Transfer {
  Transfer(std::uint64_t number, const HttpRequest& what, BodyRouter* how, Priority how_urgent)
      : id(number), request(what), router(how), priority(how_urgent) {}

  const std::uint64_t id;  ///< of the whole process: an address may be used again
  const HttpRequest& request;
  BodyRouter* const router;
  const Priority priority;

  HttpResponse response;
  BodySink* sink = nullptr;
  bool head_complete = false;  ///< the final (not 1xx) head has arrived
  std::uint64_t body_received = 0;
  std::uint64_t head_received = 0;
  std::optional<Error> failure;  ///< why a callback of ours ended the transfer
  bool retried = false;          ///< the one silent repetition on a fresh connection was used
  bool active = false;           ///< added to the multi handle

  CURL* easy = nullptr;
  curl_slist* header_list = nullptr;
  std::array<char, CURL_ERROR_SIZE> error_text{};
  MonoTime started{};
  MonoTime last_progress{};
  curl_off_t progress = -1;  ///< bytes moved when last looked at

  Mutex mutex{LockRank::kTransfer, "http transfer"};
  CondVar ended;
  bool done GUARDED_BY(mutex) = false;
  bool stop_requested GUARDED_BY(mutex) = false;
  std::optional<Result<HttpResponse>> outcome GUARDED_BY(mutex);
};

/// Bodies from this size on are received through the large buffer.
inline constexpr std::uint64_t kLargeBody = 1U << 20U;

/// Sets everything on `transfer.easy` (a fresh or reset handle). kInvalidArgument when a header holds a line break.
[[nodiscard]] Result<void> prepare(Transfer& transfer, const HttpClientOptions& options, CURLSH* share);
/// Forgets what a first attempt received, for the silent repetition.
void forget_answer(Transfer& transfer);

}  // namespace thermo::net
