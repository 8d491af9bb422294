#pragma once
// Private to s3sim: an answer before it is sent, and the one place that sends it: late, slowly, or wrong, as options and faults
// say.

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "s3sim/faults.h"
#include "s3sim/pacer.h"
#include "s3sim/stats.h"
#include "s3sim/types.h"

namespace thermo::s3sim {

/// Where the bytes of a body come from. Used by one thread.
class BodySource {
 public:
  virtual ~BodySource() = default;
  /// Moves up to `max` bytes to the client with as little work as it can; the count, 0 = end.
  [[nodiscard]] virtual Result<std::size_t> move(net::Exchange& exchange, std::uint64_t max) = 0;
  /// The next bytes into `dst`, for faults that change them; 0 = end.
  [[nodiscard]] virtual Result<std::size_t> read(std::span<std::byte> dst) = 0;
};

/// A part of an object in memory or in a file.
[[nodiscard]] std::unique_ptr<BodySource> object_body(ObjectPtr object, std::uint64_t offset, std::uint64_t length);
[[nodiscard]] std::unique_ptr<BodySource> text_body(std::string text);

struct Answer {
  int status = 200;
  Headers headers;
  std::int64_t length = -1;          ///< Content-Length; -1: none is announced
  std::unique_ptr<BodySource> body;  ///< null: nothing is sent
  bool close = false;                ///< the connection ends with this answer

  /// An XML document.
  [[nodiscard]] static Answer xml(int status, std::string document);
  [[nodiscard]] static Answer empty(int status) {
    Answer answer;
    answer.status = status;
    if (status != 204 && status != 304) answer.length = 0;
    return answer;
  }
};

/// What the sending of one answer depends on.
struct Delivery {
  net::Exchange& exchange;
  Stopper& stopper;
  Stats& stats;
  Pacer& pacer;
  SharedPacer& total;
  std::uint64_t per_connection = 0;  ///< bytes per second, 0 = no limit
  std::uint64_t total_rate = 0;
  MonoTime not_before{};  ///< the first byte leaves at this time
};

/// Waits for the bytes of one step, 0 rates do not wait; false when the server stops.
[[nodiscard]] bool pace(const Delivery& delivery, std::uint64_t bytes);
/// Bytes per step under the limits, UINT64_MAX without any.
[[nodiscard]] std::uint64_t pace_step(const Delivery& delivery);

/// Sends it all, or what the fault leaves of it. Faults of the kinds etag, checksum and truncated_list were applied by the
/// caller. Failures of the connection end the exchange quietly: the peer is gone.
void deliver(const Delivery& delivery, Answer answer, const std::optional<Fault>& fault);

}  // namespace thermo::s3sim
