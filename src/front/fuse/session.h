#pragma once
// One mounted /dev/fuse connection, served: reads requests on several threads, asks vfs, answers.
//
// A serving thread answers only what needs no wait. What waits for a disk goes to the device pool, what waits for the store to
// the read pool; when a pool's queue is full the serving thread waits itself, so that the kernel's own queue pushes back. Every
// request ends by options.timeout with EIO, whatever vfs does.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/thread_pool.h"
#include "front/fuse/fd.h"
#include "front/fuse/negotiate.h"
#include "vfs/vfs.h"

namespace thermo::fuse {

struct SessionOptions {
  ThreadPool* device_pool = nullptr;     ///< required
  ThreadPool* read_pool = nullptr;       ///< required
  metrics::Registry* metrics = nullptr;  ///< required
  const Clock* clock = &Clock::system();
  Nanos timeout = std::chrono::seconds(30);  ///< of one request; then EIO
  std::uint32_t max_minor = kProtocolMinor;  ///< caps the offered protocol (--fuse-minor)
  std::size_t threads = 0;                   ///< 0: min(cores x 2, 16)
  std::string name;                          ///< of the mount, for log lines
  /// Called once when the connection ended (unmounted, aborted, or stop()), on one of the session's threads: must not stop or
  /// destroy the session itself.
  std::function<void()> on_end;
};

/// Thread-safe. `vfs` and the pools must outlive it.
class FuseSession {
 public:
  /// Answers INIT (waits at most 10 s for it) and starts serving. Takes over the descriptor, also on failure. kNotSupported for a
  /// kernel that is too old, kInternal when the descriptor is not mounted.
  [[nodiscard]] static Result<std::unique_ptr<FuseSession>> start(UniqueFd device, vfs::Vfs& vfs, const SessionOptions& options);
  /// As stop().
  ~FuseSession();
  FuseSession(const FuseSession&) = delete;
  FuseSession& operator=(const FuseSession&) = delete;

  /// Until the kernel ended the connection (unmount) or stop() was called.
  void wait();
  /// Ends serving: waiting requests are cancelled (EIO), threads join, descriptors close. Unmount first; a mount that is still
  /// there turns into a dead one. Takes as long as vfs needs to notice a cancelled request. Idempotent; not from one of the
  /// session's own threads.
  void stop();
  [[nodiscard]] bool ended() const;

  [[nodiscard]] const Negotiated& negotiated() const;
  /// Descriptors of their own that the serving threads got: less than threads() where /dev/fuse may not be opened again (ordinary
  /// users).
  [[nodiscard]] std::size_t cloned_devices() const;
  [[nodiscard]] std::size_t threads() const;
  /// Requests that wait for a disk or the store now.
  [[nodiscard]] std::size_t waiting() const;

 private:
  struct Impl;
  explicit FuseSession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace thermo::fuse
