#include "net/curl_loop.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "net/curl_error.h"

namespace thermo::net {
namespace {

constexpr int kMaxEvents = 64;

void global_init() {
  static const CURLcode kOnce = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(kOnce);
}

Nanos stall_interval(Nanos stall) { return std::clamp<Nanos>(stall / 8, Millis(10), std::chrono::seconds(1)); }

// Body both ways and the head: any of them moving is progress.
curl_off_t bytes_moved(const Transfer& t) {
  curl_off_t sent = 0;
  curl_easy_getinfo(t.easy, CURLINFO_SIZE_UPLOAD_T, &sent);
  return sent + static_cast<curl_off_t>(t.body_received + t.head_received);
}

// Resolving and connecting have the connect timeout; stalling can only who has a connection.
bool is_connected(const Transfer& t) {
  curl_off_t pretransfer_us = 0;
  curl_easy_getinfo(t.easy, CURLINFO_PRETRANSFER_TIME_T, &pretransfer_us);
  return pretransfer_us > 0;
}

}  // namespace

CurlLoop::CurlLoop(const HttpClientOptions& options)
    : options_(options), stall_check_every_(stall_interval(options.stall_timeout)) {
  global_init();
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) startup_errno_ = errno;
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) startup_errno_ = errno;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wake_;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
  multi_ = curl_multi_init();
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlLoop::on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlLoop::on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(options_.max_connections));
  curl_multi_setopt(multi_, CURLMOPT_MAX_TOTAL_CONNECTIONS, static_cast<long>(options_.max_connections));
  curl_multi_setopt(multi_, CURLMOPT_MAX_HOST_CONNECTIONS, static_cast<long>(options_.max_connections_per_host));
  // Only TLS sessions: connections and names are shared by the multi handle anyway. One thread uses it, so it needs no locks.
  share_ = curl_share_init();
  curl_share_setopt(share_, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
  if (startup_errno_ == 0) thread_ = std::thread([this] { run(); });
}

CurlLoop::~CurlLoop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
  for (auto& handles : idle_handles_) {
    for (CURL* easy : handles) curl_easy_cleanup(easy);
  }
  curl_multi_cleanup(multi_);
  curl_share_cleanup(share_);
  if (wake_ >= 0) close(wake_);
  if (epoll_ >= 0) close(epoll_);
}

Result<void> CurlLoop::submit(Transfer& transfer) {
  if (startup_errno_ != 0) return fail(errno_error(startup_errno_, "start the http client"));
  {
    MutexLock lock(mutex_);
    if (stopping_) return fail(ErrorCode::kCancelled, "the http client is shut down");
    submitted_.push_back(&transfer);
  }
  wake();
  return {};
}

void CurlLoop::cancel(std::uint64_t id) {
  {
    MutexLock lock(mutex_);
    cancelled_.push_back(id);
  }
  wake();
}

void CurlLoop::wake() {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the loop is awake anyway.
  static_cast<void>(::write(wake_, &one, sizeof one));
}

int CurlLoop::on_socket(CURL* /*easy*/, curl_socket_t socket, int what, void* self, void* known) {
  auto& loop = *static_cast<CurlLoop*>(self);
  if (what == CURL_POLL_REMOVE) {
    epoll_ctl(loop.epoll_, EPOLL_CTL_DEL, socket, nullptr);
    curl_multi_assign(loop.multi_, socket, nullptr);
    return 0;
  }
  epoll_event event{};
  event.data.fd = socket;
  if ((what & CURL_POLL_IN) != 0) event.events |= EPOLLIN;
  if ((what & CURL_POLL_OUT) != 0) event.events |= EPOLLOUT;
  const bool is_new = known == nullptr;
  if (epoll_ctl(loop.epoll_, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &event) != 0) {
    // The number of a closed socket is used again, or epoll still knows it: the other verb is right.
    epoll_ctl(loop.epoll_, is_new ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event);
  }
  if (is_new) curl_multi_assign(loop.multi_, socket, &loop);
  return 0;
}

int CurlLoop::on_timer(CURLM* /*multi*/, long timeout_ms, void* self) {
  auto& loop = *static_cast<CurlLoop*>(self);
  loop.timer_due_ = timeout_ms < 0 ? MonoTime::max() : Clock::system().now() + Millis(timeout_ms);
  return 0;
}

void CurlLoop::run() {
  pthread_setname_np(pthread_self(), "http");
  // Signals belong to the main thread; a broken pipe inside TLS is an error code here.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  while (true) {
    take_orders();
    {
      MutexLock lock(mutex_);
      if (stopping_ && submitted_.empty()) break;
    }
    start_waiting();
    wait_for_events();
    collect_finished();
    if (!active_.empty() && Clock::system().now() >= stall_check_due_) end_stalled();
  }
  for (auto& queue : waiting_) {
    for (Transfer* t : queue) finish(*t, fail(ErrorCode::kCancelled, "the http client is shut down"));
    queue.clear();
  }
  while (!active_.empty()) finish(*active_.back(), fail(ErrorCode::kCancelled, "the http client is shut down"));
}

void CurlLoop::take_orders() {
  std::vector<Transfer*> submitted;
  std::vector<std::uint64_t> cancelled;
  {
    MutexLock lock(mutex_);
    submitted.swap(submitted_);
    cancelled.swap(cancelled_);
  }
  for (Transfer* t : submitted) waiting_[static_cast<std::size_t>(t->priority)].push_back(t);
  for (const auto id : cancelled) give_up(id);
}

// By id, not by address: the transfer may have ended meanwhile and its caller be gone.
void CurlLoop::give_up(std::uint64_t id) {
  const auto is_it = [id](const Transfer* t) { return t->id == id; };
  for (auto& queue : waiting_) {
    if (const auto it = std::find_if(queue.begin(), queue.end(), is_it); it != queue.end()) {
      Transfer* t = *it;
      queue.erase(it);
      return finish(*t, fail(ErrorCode::kCancelled, "given up before it was sent"));
    }
  }
  if (const auto it = std::find_if(active_.begin(), active_.end(), is_it); it != active_.end()) {
    finish(**it, fail(ErrorCode::kCancelled, "given up"));
  }
}

void CurlLoop::start_waiting() {
  for (auto& queue : waiting_) {
    while (!queue.empty() && active_.size() < options_.max_connections) {
      Transfer* t = queue.front();
      queue.pop_front();
      start(*t);
    }
  }
}

void CurlLoop::start(Transfer& t) {
  auto& idle = idle_handles_[t.request.expected_body >= kLargeBody ? 1 : 0];
  if (idle.empty()) {
    t.easy = curl_easy_init();
  } else {
    t.easy = idle.back();
    idle.pop_back();
  }
  if (t.easy == nullptr) return finish(t, fail(ErrorCode::kInternal, "out of memory"));
  if (auto prepared = prepare(t, options_, share_); !prepared) return finish(t, fail(prepared.error()));
  if (active_.empty()) stall_check_due_ = Clock::system().now() + stall_check_every_;
  t.started = t.last_progress = options_.clock->now();
  active_.push_back(&t);
  t.active = true;
  const CURLMcode added = curl_multi_add_handle(multi_, t.easy);
  if (added != CURLM_OK) finish(t, fail(ErrorCode::kInternal, curl_multi_strerror(added)));
}

void CurlLoop::wait_for_events() {
  const MonoTime now = Clock::system().now();
  const MonoTime due = std::min(timer_due_, active_.empty() ? MonoTime::max() : stall_check_due_);
  int timeout_ms = -1;
  if (due != MonoTime::max()) timeout_ms = due <= now ? 0 : static_cast<int>(std::chrono::ceil<Millis>(due - now).count());
  std::array<epoll_event, kMaxEvents> events{};
  const int count = epoll_wait(epoll_, events.data(), kMaxEvents, timeout_ms);
  int running = 0;
  for (int i = 0; i < count; ++i) {
    const auto& event = events[static_cast<std::size_t>(i)];
    if (event.data.fd == wake_) {
      std::uint64_t ignored = 0;
      static_cast<void>(::read(wake_, &ignored, sizeof ignored));
      continue;
    }
    int mask = 0;
    if ((event.events & (EPOLLIN | EPOLLHUP)) != 0) mask |= CURL_CSELECT_IN;
    if ((event.events & EPOLLOUT) != 0) mask |= CURL_CSELECT_OUT;
    if ((event.events & EPOLLERR) != 0) mask |= CURL_CSELECT_ERR;
    curl_multi_socket_action(multi_, event.data.fd, mask, &running);
  }
  if (timer_due_ != MonoTime::max() && Clock::system().now() >= timer_due_) {
    timer_due_ = MonoTime::max();
    curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
  }
}

void CurlLoop::collect_finished() {
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;  // the message dies with remove_handle
    char* pointer = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &pointer);
    finished(*reinterpret_cast<Transfer*>(pointer), code);
  }
}

void CurlLoop::finished(Transfer& t, CURLcode code) {
  if (t.failure) return finish(t, fail(*t.failure));
  if (code == CURLE_OK) {
    if (t.head_complete) return finish(t, std::move(t.response));
    return finish(t, fail(curl_error(t, CURLE_GOT_NOTHING, options_)));
  }
  if (repeat_on_fresh_connection(t, code)) return;
  finish(t, fail(curl_error(t, code, options_)));
}

bool CurlLoop::repeat_on_fresh_connection(Transfer& t, CURLcode code) {
  long opened = 1;
  curl_easy_getinfo(t.easy, CURLINFO_NUM_CONNECTS, &opened);
  const bool reset = code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING;
  if (!reset || opened != 0 || t.head_received != 0 || t.retried) return false;
  t.retried = true;
  forget_answer(t);
  curl_multi_remove_handle(multi_, t.easy);
  curl_easy_setopt(t.easy, CURLOPT_FRESH_CONNECT, 1L);
  t.last_progress = options_.clock->now();
  return curl_multi_add_handle(multi_, t.easy) == CURLM_OK;
}

void CurlLoop::end_stalled() {
  stall_check_due_ = Clock::system().now() + stall_check_every_;
  const MonoTime now = options_.clock->now();
  std::vector<Transfer*> stalled;
  for (Transfer* t : active_) {
    const curl_off_t moved = bytes_moved(*t);
    if (moved != t->progress || !is_connected(*t)) {
      t->progress = moved;
      t->last_progress = now;
    } else if (now - t->last_progress >= options_.stall_timeout) {
      stalled.push_back(t);
    }
  }
  for (Transfer* t : stalled) finish(*t, fail(stall_error(*t, now - t->last_progress)));
}

void CurlLoop::release_handle(Transfer& t) {
  if (t.active) {
    curl_multi_remove_handle(multi_, t.easy);
    std::erase(active_, &t);
    t.active = false;
  }
  if (t.easy != nullptr) {
    curl_easy_reset(t.easy);  // keeps the TLS session, drops every pointer into the transfer
    auto& idle = idle_handles_[t.request.expected_body >= kLargeBody ? 1 : 0];
    if (idle.size() < options_.max_connections) {
      idle.push_back(t.easy);
    } else {
      curl_easy_cleanup(t.easy);
    }
    t.easy = nullptr;
  }
  curl_slist_free_all(t.header_list);
  t.header_list = nullptr;
}

void CurlLoop::finish(Transfer& t, Result<HttpResponse> outcome) {
  release_handle(t);
  MutexLock lock(t.mutex);
  t.outcome = std::move(outcome);
  t.done = true;
  // Under the lock: as soon as it is free the caller may take the transfer off its stack.
  t.ended.notify_all();
}

}  // namespace thermo::net
