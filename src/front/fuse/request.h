#pragma once
// Bounds-checked decoding of what was read from /dev/fuse. Pure: a fuzz target may call it with any bytes.

#include <span>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "front/fuse/protocol.h"

namespace thermo::fuse {

/// LOOKUP and other requests whose whole argument is one name.
struct NameArgs {
  std::string_view name;
};
struct XattrArgs {
  std::uint32_t size = 0;  ///< 0: only the length is asked for
  std::string_view name;   ///< empty for LISTXATTR
};
/// Requests whose argument does not matter to the answer (all writing ones, FORGET, unknown ones).
struct NoArgs {};

/// One decoded request. Views point into the frame.
struct Request {
  InHeader header{};
  std::variant<NoArgs, NameArgs, GetattrIn, OpenIn, ReadIn, ReleaseIn, XattrArgs, InterruptIn, InitIn> args;
  [[nodiscard]] Opcode opcode() const { return static_cast<Opcode>(header.opcode); }
};

/// Decodes one frame. kInvalidArgument when the frame is shorter than its header, its length field differs from what was read, an
/// argument is cut, or a name is empty or lacks its NUL. `header` (optional) gets the header even where the arguments are bad, so
/// that an error can be sent back; it is left alone when there is none.
[[nodiscard]] Result<Request> parse_request(std::span<const std::byte> frame, InHeader* header = nullptr);

}  // namespace thermo::fuse
