#pragma once
// The inside of a session: one request from its frame to its answer. Knows descriptors and pools, starts no threads.

#include <atomic>
#include <span>
#include <string>

#include "base/thread_pool.h"
#include "front/fuse/handlers.h"
#include "front/fuse/inflight.h"
#include "front/fuse/op_metrics.h"
#include "front/fuse/session.h"

namespace thermo::fuse {

/// Thread-safe. Must outlive its tasks in the pools: drain() before destruction.
class Server {
 public:
  /// `threads`: how many call serve(). All but one of them may wait for the device at a time.
  Server(vfs::Vfs& vfs, const Negotiated& agreed, const SessionOptions& options, std::size_t threads);

  /// Serves one frame that was read from `device`. Returns when it is answered or handed to a pool.
  void serve(int device, std::span<const std::byte> frame, Scratch& scratch);
  /// Answers EIO to waiting requests whose deadline has passed; to be called a few times a second.
  void expire();
  /// Cancels what waits and what will.
  void close() { inflight_.close(); }
  /// Waits until no task is left in the pools.
  void drain() { inflight_.wait_empty(); }
  [[nodiscard]] std::size_t waiting() const { return inflight_.size(); }

 private:
  struct Call;
  void wait_here(Call call, Scratch& scratch);
  void hand_over(Call call, ErrorCode why, Scratch& scratch);
  void enlist(Call& call);
  void run_waiting(Call& call, Scratch& scratch);
  void finish(const Call& call, const Result<void>& result, Answer& answer);
  void trace(const Call& call, const Answer& answer, Nanos took) const;

  vfs::Vfs& vfs_;
  Handlers handlers_;
  const SessionOptions options_;
  OpMetrics metrics_;
  InFlight inflight_;
  const std::size_t may_wait_here_;
  std::atomic<std::size_t> waiting_here_{0};
};

}  // namespace thermo::fuse
