#include "front/fuse/request.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace thermo::fuse {
namespace {

tl::unexpected<Error> bad_frame(const InHeader& header, std::string_view why) {
  return fail(ErrorCode::kInvalidArgument, "FUSE request " + std::string(opcode_name(header.opcode)) + ": " + std::string(why));
}

template <class T>
bool take(std::span<const std::byte>& body, T& out) {
  if (body.size() < sizeof(T)) return false;
  std::memcpy(&out, body.data(), sizeof(T));
  body = body.subspan(sizeof(T));
  return true;
}

/// A NUL-terminated, non-empty name at the front of `body`.
bool take_name(std::span<const std::byte>& body, std::string_view& out) {
  const auto* text = reinterpret_cast<const char*>(body.data());
  const void* end = body.empty() ? nullptr : std::memchr(text, 0, body.size());
  if (end == nullptr) return false;
  const auto length = static_cast<std::size_t>(static_cast<const char*>(end) - text);
  if (length == 0) return false;
  out = {text, length};
  body = body.subspan(length + 1);
  return true;
}

template <class T>
Result<void> fixed(Request& request, std::span<const std::byte> body) {
  T args{};
  if (!take(body, args)) return bad_frame(request.header, "arguments are cut");
  request.args = args;
  return {};
}

Result<void> parse_init(Request& request, std::span<const std::byte> body) {
  InitIn init{};  // shorter from kernels before 7.36: what is missing is zero
  if (body.size() < kInitInShort) return bad_frame(request.header, "arguments are cut");
  std::memcpy(&init, body.data(), std::min(body.size(), sizeof init));
  request.args = init;
  return {};
}

Result<void> parse_xattr(Request& request, std::span<const std::byte> body) {
  GetxattrIn in{};
  XattrArgs args;
  if (!take(body, in)) return bad_frame(request.header, "arguments are cut");
  args.size = in.size;
  if (request.opcode() == Opcode::kGetxattr && !take_name(body, args.name)) return bad_frame(request.header, "no attribute name");
  request.args = args;
  return {};
}

}  // namespace

Result<Request> parse_request(std::span<const std::byte> frame, InHeader* header) {
  Request request;
  auto body = frame;
  if (!take(body, request.header)) return fail(ErrorCode::kInvalidArgument, "FUSE request: shorter than its header");
  if (header != nullptr) *header = request.header;
  if (request.header.len != frame.size()) return bad_frame(request.header, "length field differs from what was read");
  const std::size_t extensions = std::size_t{request.header.total_extlen} * 8;
  if (extensions > body.size()) return bad_frame(request.header, "extensions are longer than the request");
  body = body.first(body.size() - extensions);

  Result<void> parsed;
  switch (request.opcode()) {
    case Opcode::kLookup: {
      NameArgs args;
      if (!take_name(body, args.name)) return bad_frame(request.header, "no name");
      request.args = args;
      break;
    }
    case Opcode::kGetattr: parsed = fixed<GetattrIn>(request, body); break;
    case Opcode::kOpen:
    case Opcode::kOpendir: parsed = fixed<OpenIn>(request, body); break;
    case Opcode::kRead:
    case Opcode::kReaddir:
    case Opcode::kReaddirplus: parsed = fixed<ReadIn>(request, body); break;
    case Opcode::kRelease:
    case Opcode::kReleasedir: parsed = fixed<ReleaseIn>(request, body); break;
    case Opcode::kGetxattr:
    case Opcode::kListxattr: parsed = parse_xattr(request, body); break;
    case Opcode::kInterrupt: parsed = fixed<InterruptIn>(request, body); break;
    case Opcode::kInit: parsed = parse_init(request, body); break;
    default: break;
  }
  if (!parsed) return fail(parsed.error());
  return request;
}

}  // namespace thermo::fuse
