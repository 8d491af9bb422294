#pragma once
// The inside of a session: one request from its frame to its answer. Knows descriptors and pools, starts no threads.

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
  Server(vfs::Vfs& vfs, const Negotiated& agreed, const SessionOptions& options);

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
  void hand_over(Call call, ErrorCode why, Scratch& scratch);
  void run_waiting(Call& call, Scratch& scratch);
  void finish(const Call& call, const Result<void>& result, Answer& answer);
  void trace(const Call& call, const Answer& answer, Nanos took) const;

  vfs::Vfs& vfs_;
  Handlers handlers_;
  const SessionOptions options_;
  OpMetrics metrics_;
  InFlight inflight_;
};

}  // namespace thermo::fuse
