#pragma once
// Lines of text, with descriptors attached to them, over a connected unix stream socket: the framing of the admin protocol.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "front/admin/unique_fd.h"

namespace thermo::admin {

inline constexpr std::size_t kMaxLineBytes =
    4u << 20;  ///< longer lines are kInvalidArgument, and the connection is of no further use
inline constexpr std::size_t kMaxLineDescriptors = 16;  ///< further ones are closed unseen

struct Line {
  std::string text;  ///< without the newline
  std::vector<UniqueFd> descriptors;
};

/// Used by one thread at a time, except that stop_receiving() and shutdown() may come from any.
class LineChannel {
 public:
  explicit LineChannel(UniqueFd socket) : socket_(std::move(socket)) {}

  /// Sends `text` and a newline; `text` holds none. kUnavailable when the peer is gone, kTimeout when it does not read for 30 s.
  [[nodiscard]] Result<void> send(std::string_view text, std::span<const int> descriptors = {});
  /// The next line; nullopt when the peer closed between lines. kTimeout after `deadline`, kInvalidArgument for a line that is
  /// too long or cut off by the end, kUnavailable when the connection broke.
  [[nodiscard]] Result<std::optional<Line>> receive(MonoTime deadline = MonoTime::max());
  /// True when the peer has closed its end.
  [[nodiscard]] bool hung_up() const;
  /// Wakes a blocked receive() with the end of the stream; what is to be sent still can be.
  void stop_receiving();
  /// Ends both directions: a blocked send() fails too.
  void shutdown();
  [[nodiscard]] int fd() const { return socket_.get(); }

 private:
  [[nodiscard]] Result<std::size_t> fill(MonoTime deadline);

  UniqueFd socket_;
  std::string buffer_;
  std::size_t scanned_ = 0;  // bytes of buffer_ known to hold no newline
  std::vector<UniqueFd> pending_;
};

}  // namespace thermo::admin
