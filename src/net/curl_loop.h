#pragma once
// The thread that drives all transfers: epoll below libcurl's multi interface, so that an event costs the same with 1 or 100
// connections.

#include <curl/curl.h>

#include <array>
#include <deque>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "net/curl_transfer.h"

namespace thermo::net {

/// submit() and cancel() are thread-safe; everything else runs on the loop's own thread.
class CurlLoop {
 public:
  explicit CurlLoop(const HttpClientOptions& options);
  ~CurlLoop();
  CurlLoop(const CurlLoop&) = delete;
  CurlLoop& operator=(const CurlLoop&) = delete;

  /// From here on `transfer` is the loop's until its `done` is set. An error (shut down, no descriptors) leaves it the caller's.
  [[nodiscard]] Result<void> submit(Transfer& transfer);
  /// Ends the transfer of that id soon with kCancelled; nothing happens when it has ended.
  void cancel(std::uint64_t id);

 private:
  static int on_socket(CURL* easy, curl_socket_t socket, int what, void* self, void* known);
  static int on_timer(CURLM* multi, long timeout_ms, void* self);

  void run();
  void wake();
  void take_orders();
  void give_up(std::uint64_t id);
  void start_waiting();
  void start(Transfer& transfer);
  void wait_for_events();
  void collect_finished();
  void finished(Transfer& transfer, CURLcode code);
  bool repeat_on_fresh_connection(Transfer& transfer, CURLcode code);
  void end_stalled();
  void finish(Transfer& transfer, Result<HttpResponse> outcome);
  void release_handle(Transfer& transfer);

  const HttpClientOptions options_;
  int startup_errno_ = 0;  // of epoll or eventfd: then there is no thread
  int epoll_ = -1;
  int wake_ = -1;
  CURLM* multi_ = nullptr;
  CURLSH* share_ = nullptr;
  MonoTime timer_due_ = MonoTime::max();
  MonoTime stall_check_due_ = MonoTime::max();
  const Nanos stall_check_every_;
  std::array<std::deque<Transfer*>, 4> waiting_;  // by priority
  std::vector<Transfer*> active_;
  std::array<std::vector<CURL*>, 2> idle_handles_;  // small and large buffers: libcurl does not like to change the size

  Mutex mutex_{LockRank::kHttp, "http loop"};
  std::vector<Transfer*> submitted_ GUARDED_BY(mutex_);
  std::vector<std::uint64_t> cancelled_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace thermo::net
