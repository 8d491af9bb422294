#pragma once
// Private to net: one accepted socket, plain or TLS, with blocking reads and writes that time out.

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace thermo::net {

/// Owned by the connection's thread; `shut_down` alone may be called from another thread.
class ServerSocket {
 public:
  virtual ~ServerSocket() = default;
  /// 0 = the peer closed. kTimeout when nothing came for the idle timeout, kUnavailable on a reset.
  [[nodiscard]] virtual Result<std::size_t> read(std::span<std::byte> dst) = 0;
  /// Writes all. `more`: the rest of the answer follows at once, so the kernel may hold a short last segment back.
  [[nodiscard]] virtual Result<void> write(std::span<iovec> parts, bool more) = 0;
  [[nodiscard]] virtual Result<void> send_file(int fd, std::uint64_t offset, std::uint64_t length) = 0;
  /// Descriptor that bytes may be spliced into; -1 when there is a layer in between.
  [[nodiscard]] virtual int raw_fd() const = 0;
  /// Says farewell to the peer (TLS close_notify, FIN), reading stays possible.
  virtual void finish_writing() = 0;
};

/// Context shared by all TLS connections of a server.
class TlsContext;
[[nodiscard]] Result<std::shared_ptr<TlsContext>> make_tls_context(const std::string& certificate, const std::string& key);

[[nodiscard]] std::unique_ptr<ServerSocket> make_plain_socket(int fd);
/// Handshakes on the calling thread.
[[nodiscard]] Result<std::unique_ptr<ServerSocket>> make_tls_socket(int fd, const std::shared_ptr<TlsContext>& context);

/// Read and write timeouts, no Nagle.
void prepare_socket(int fd, Nanos timeout);

}  // namespace thermo::net
