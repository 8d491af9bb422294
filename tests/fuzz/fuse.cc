// Requests of the kernel: frames of any content get exactly the answers that the protocol allows, well formed.
//
// Input: records of (opcode, node, length of the arguments, arguments), which become frames; an opcode of 255 takes the rest as
// one raw frame.

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "base/log.h"
#include "front/fuse/negotiate.h"
#include "front/fuse/server.h"
#include "fuzz/fuzz.h"
#include "unit/front/fuse/fake_vfs.h"

namespace thermo::fuzz {
namespace {

using fuse::testing::FakeVfs;

/// One mount of a small tree, kept from input to input; answers arrive at the other end of a socket, one datagram each.
struct Mount {
  Mount() {
    FUZZ_CHECK(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends.data()) == 0);
    const auto folder = vfs.add_dir(1, "Date=2024-01-02");
    nodes = {1, folder, vfs.add_file(1, "empty", ""), vfs.add_file(folder, "Price.dat", std::string(70'000, 'p')), 0, 99};
    options.metrics = &registry;
    options.name = "fuzz";
    fuse::InitIn offer{};
    offer.major = 7;
    offer.minor = 45;
    offer.flags = ~0U;
    server = std::make_unique<fuse::Server>(vfs, *fuse::negotiate(offer, 45), options);
  }
  std::array<int, 2> ends{};
  FakeVfs vfs;
  std::vector<vfs::NodeId> nodes;
  std::vector<vfs::HandleId> opened;
  metrics::Registry registry;
  fuse::SessionOptions options;
  fuse::Scratch scratch;
  std::unique_ptr<fuse::Server> server;
};

bool silent(std::uint32_t opcode) {
  switch (static_cast<fuse::Opcode>(opcode)) {
    case fuse::Opcode::kForget:
    case fuse::Opcode::kBatchForget:
    case fuse::Opcode::kInterrupt:
    case fuse::Opcode::kNotifyReply: return true;
    default: return false;
  }
}

void serve(Mount& mount, std::span<const std::byte> frame) {
  fuse::InHeader header{};
  fuse::InHeader told{};
  const bool has_header = frame.size() >= sizeof header;
  if (has_header) std::memcpy(&header, frame.data(), sizeof header);
  const auto parsed = fuse::parse_request(frame, &told);
  if (has_header) FUZZ_CHECK(told.unique == header.unique);
  if (parsed) FUZZ_CHECK(has_header && header.len == frame.size());

  mount.server->serve(mount.ends[0], frame, mount.scratch);
  std::array<std::byte, 1U << 17U> answer;
  int answers = 0;
  for (ssize_t n = 0; (n = ::recv(mount.ends[1], answer.data(), answer.size(), 0)) > 0; ++answers) {
    fuse::OutHeader out{};
    FUZZ_CHECK(static_cast<std::size_t>(n) >= sizeof out);
    std::memcpy(&out, answer.data(), sizeof out);
    // The kernel refuses an answer that breaks one of these, and the program waits for ever.
    FUZZ_CHECK(out.len == static_cast<std::size_t>(n) && out.unique == header.unique);
    FUZZ_CHECK(out.error <= 0 && out.error > -512 && (out.error == 0 || out.len == sizeof out));
    if (!parsed || out.error != 0) continue;
    if (std::holds_alternative<fuse::OpenIn>(parsed->args)) {
      fuse::OpenOut open{};
      FUZZ_CHECK(out.len == sizeof out + sizeof open);
      std::memcpy(&open, answer.data() + sizeof out, sizeof open);
      mount.opened.push_back(open.fh);
    }
    if (const auto* read = std::get_if<fuse::ReadIn>(&parsed->args)) FUZZ_CHECK(out.len - sizeof out <= read->size);
    if (const auto* xattr = std::get_if<fuse::XattrArgs>(&parsed->args))
      FUZZ_CHECK(xattr->size == 0 || out.len - sizeof out <= xattr->size);
  }
  const bool expected = has_header && header.unique != 0 && !(parsed && silent(header.opcode));
  FUZZ_CHECK(answers == (expected ? 1 : 0) || (header.unique == 0 && answers <= 1));
}

}  // namespace
}  // namespace thermo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thermo;
  static auto& mount = *new fuzz::Mount();
  log::set_level(log::Level::kError);
  fuzz::Input input(fuzz::text_of(data, size));
  for (std::uint64_t unique = 2; !input.empty() && unique < 64; unique += 2) {
    const std::uint8_t opcode = input.byte();
    std::vector<std::byte> frame;
    if (opcode == 255) {
      const auto raw = std::as_bytes(std::span(input.rest()));
      frame.assign(raw.begin(), raw.end());
      input.bytes(raw.size());
    } else {
      const auto node = mount.nodes[input.byte() % mount.nodes.size()];
      const auto args = input.bytes(input.byte());
      fuse::InHeader header{};
      header.len = static_cast<std::uint32_t>(sizeof header + args.size());
      header.opcode = opcode;
      header.unique = unique;
      header.nodeid = node;
      frame.resize(header.len);
      std::memcpy(frame.data(), &header, sizeof header);
      if (!args.empty()) std::memcpy(frame.data() + sizeof header, args.data(), args.size());
    }
    fuzz::serve(mount, frame);
  }
  // What stayed from input to input would be taken for a leak and searched for, which costs more than all else.
  for (const auto handle : mount.opened) mount.vfs.release(handle);
  mount.opened.clear();
  mount.opened.shrink_to_fit();
  return 0;
}
