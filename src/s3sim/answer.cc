#include "s3sim/answer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace thermo::s3sim {
namespace {

/// Largest step without a limit: bounds how long a stop goes unnoticed.
constexpr std::uint64_t kFreeStep = 4ULL << 20;
/// The first step is small, so that a bandwidth limit does not hold the first byte back.
constexpr std::uint64_t kFirstStep = 16 * 1024;

class ObjectBody final : public BodySource {
 public:
  ObjectBody(ObjectPtr object, std::uint64_t offset, std::uint64_t length)
      : object_(std::move(object)), at_(offset), left_(length) {}

  Result<std::size_t> move(net::Exchange& exchange, std::uint64_t max) override {
    const std::uint64_t n = std::min(left_, max);
    if (n == 0) return 0;
    if (object_->data) {
      TRY(exchange.send_body(std::as_bytes(std::span(object_->data->data() + at_, n))));
    } else {
      TRY(exchange.send_file(object_->file->fd(), at_, n));
    }
    advance(n);
    return n;
  }

  Result<std::size_t> read(std::span<std::byte> dst) override {
    const std::uint64_t n = std::min<std::uint64_t>(left_, dst.size());
    if (n == 0) return 0;
    if (object_->data) {
      std::memcpy(dst.data(), object_->data->data() + at_, n);
      advance(n);
      return n;
    }
    const ssize_t got = ::pread(object_->file->fd(), dst.data(), n, static_cast<off_t>(at_));
    if (got < 0) return fail(errno_error(errno, "read an object's file"));
    if (got == 0) return fail(ErrorCode::kCorrupt, "an object's file became shorter");
    advance(static_cast<std::uint64_t>(got));
    return static_cast<std::size_t>(got);
  }

 private:
  void advance(std::uint64_t n) {
    at_ += n;
    left_ -= n;
  }

  ObjectPtr object_;
  std::uint64_t at_;
  std::uint64_t left_;
};

/// Moves at most `limit` bytes; false when the connection is of no more use.
bool send_up_to(const Delivery& delivery, BodySource& body, std::uint64_t limit, std::uint64_t& sent) {
  const std::uint64_t step = std::min(pace_step(delivery), kFreeStep);
  while (sent < limit) {
    const std::uint64_t want = std::min(limit - sent, sent == 0 && step < kFreeStep ? kFirstStep : step);
    if (!pace(delivery, want)) return false;
    // A source may move less than was booked; the rest of the booking is used before the next one.
    for (std::uint64_t left = want; left > 0;) {
      const auto n = body.move(delivery.exchange, left);
      if (!n) return false;
      if (*n == 0) return true;
      left -= *n;
      sent += *n;
      delivery.stats.add_out(*n);
    }
  }
  return true;
}

bool send_flipped(const Delivery& delivery, BodySource& body, double position) {
  std::array<std::byte, 1> one{};
  const auto n = body.read(one);
  if (!n || *n == 0) return false;
  one[0] ^= std::byte{1} << static_cast<int>(position * 8);
  delivery.stats.add_out(1);
  return delivery.exchange.send_body(one).has_value();
}

}  // namespace

std::unique_ptr<BodySource> object_body(ObjectPtr object, std::uint64_t offset, std::uint64_t length) {
  return std::make_unique<ObjectBody>(std::move(object), offset, length);
}

std::unique_ptr<BodySource> text_body(std::string text) {
  auto object = std::make_shared<Object>();
  object->size = text.size();
  object->data = std::make_shared<const std::string>(std::move(text));
  const std::uint64_t size = object->size;
  return object_body(std::move(object), 0, size);
}

Answer Answer::xml(int status, std::string document) {
  Answer answer;
  answer.status = status;
  answer.headers.emplace_back("Content-Type", "application/xml");
  answer.length = static_cast<std::int64_t>(document.size());
  answer.body = text_body(std::move(document));
  return answer;
}

bool pace(const Delivery& delivery, std::uint64_t bytes) {
  MonoTime until{};
  const MonoTime now = Clock::system().now();
  if (delivery.per_connection > 0) until = delivery.pacer.book(now, bytes, delivery.per_connection);
  if (delivery.total_rate > 0) until = std::max(until, delivery.total.book(now, bytes, delivery.total_rate));
  if (until == MonoTime{}) return !delivery.stopper.stopped();
  return delivery.stopper.sleep_until(until);
}

std::uint64_t pace_step(const Delivery& delivery) {
  std::uint64_t step = UINT64_MAX;
  if (delivery.per_connection > 0) step = Pacer::step(delivery.per_connection);
  if (delivery.total_rate > 0) step = std::min(step, Pacer::step(delivery.total_rate));
  return step;
}

void deliver(const Delivery& delivery, Answer answer, const std::optional<Fault>& fault) {
  net::Exchange& exchange = delivery.exchange;
  if (!delivery.stopper.sleep_until(delivery.not_before)) exchange.close(false);
  if (answer.close) exchange.close(false);
  if (!exchange.send_head(answer.status, answer.headers, answer.length)) return;
  if (!answer.body || exchange.request().method == "HEAD") return;
  delivery.pacer.begin(Clock::system().now());

  std::uint64_t sent = 0;
  if (fault && answer.length > 0) {
    // At least one byte less than all for those that must not complete.
    const auto middle = static_cast<std::uint64_t>(fault->position * static_cast<double>(answer.length));
    const bool known = fault->kind == FaultKind::kReset || fault->kind == FaultKind::kCut || fault->kind == FaultKind::kStall ||
                       fault->kind == FaultKind::kFlip;
    if (known && !send_up_to(delivery, *answer.body, middle, sent)) return exchange.close(true);
    switch (fault->kind) {
      case FaultKind::kReset: (void)exchange.send_body({}); return exchange.close(true);
      case FaultKind::kCut: return exchange.close(false);
      case FaultKind::kStall:
        (void)exchange.send_body({});
        if (!delivery.stopper.sleep_until(Clock::system().now() + fault->duration)) return exchange.close(true);
        break;
      case FaultKind::kFlip:
        if (!send_flipped(delivery, *answer.body, fault->position)) return exchange.close(true);
        ++sent;
        break;
      default: break;
    }
  }
  const std::uint64_t all = answer.length >= 0 ? static_cast<std::uint64_t>(answer.length) : UINT64_MAX;
  if (!send_up_to(delivery, *answer.body, all, sent)) return exchange.close(true);
  // An empty body still has a head to send.
  if (sent == 0) (void)exchange.send_body({});
}

}  // namespace thermo::s3sim
