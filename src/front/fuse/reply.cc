#include "front/fuse/reply.h"

#include <sys/uio.h>

#include <cerrno>

#include "base/log.h"

namespace thermo::fuse {
namespace {

constexpr std::size_t kMaxVectors = 256;  // the kernel takes 1024; a reply of more slices is copied together

Sent write_vectors(int device, const iovec* vectors, std::size_t count) {
  ssize_t n = 0;
  do {
    n = ::writev(device, vectors, static_cast<int>(count));
  } while (n < 0 && errno == EINTR);
  if (n >= 0) return Sent::kTaken;
  return errno == ENOENT || errno == ENODEV || errno == ENOTCONN || errno == ECONNABORTED ? Sent::kGone : Sent::kFailed;
}

}  // namespace

Sent send_error(int device, std::uint64_t unique, int error) {
  OutHeader header{sizeof(OutHeader), -error, unique};
  const iovec vector{&header, sizeof header};
  return write_vectors(device, &vector, 1);
}

Sent send_answer(int device, std::uint64_t unique, const Answer& answer) {
  if (answer.error != 0) return send_error(device, unique, answer.error);
  OutHeader header{static_cast<std::uint32_t>(sizeof(OutHeader) + answer.size()), 0, unique};
  std::array<iovec, kMaxVectors> vectors;
  std::size_t count = 0;
  const auto add = [&](const void* data, std::size_t size) {
    if (size > 0) vectors[count++] = {const_cast<void*>(data), size};
  };
  add(&header, sizeof header);
  add(answer.fixed.data(), answer.fixed_size);
  add(answer.text.data(), answer.text.size());
  add(answer.body.data(), answer.body.size());
  std::vector<std::byte> joined;
  if (answer.pages.slices.size() <= kMaxVectors - count) {
    for (const auto& slice : answer.pages.slices) add(slice.bytes.data(), slice.bytes.size());
  } else {
    joined.reserve(answer.pages.size());
    for (const auto& slice : answer.pages.slices) joined.insert(joined.end(), slice.bytes.begin(), slice.bytes.end());
    add(joined.data(), joined.size());
  }
  const auto sent = write_vectors(device, vectors.data(), count);
  if (sent == Sent::kFailed) {
    log::warn("fuse: the kernel refused an answer of {} bytes: errno {}", answer.size(), errno);
    send_error(device, unique, EIO);  // better an error than a program that hangs
  }
  return sent;
}

}  // namespace thermo::fuse
