// Frames as the kernel sends them, cut, bent and random; and INIT.

#include "front/fuse/request.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/rng.h"
#include "front/fuse/negotiate.h"

namespace thermo::fuse {
namespace {

std::vector<std::byte> frame_of(Opcode opcode, std::string_view body, std::uint16_t extensions = 0) {
  InHeader header{};
  header.len = static_cast<std::uint32_t>(sizeof header + body.size());
  header.opcode = static_cast<std::uint32_t>(opcode);
  header.unique = 8;
  header.nodeid = 1;
  header.total_extlen = extensions;
  std::vector<std::byte> frame(header.len);
  std::memcpy(frame.data(), &header, sizeof header);
  std::memcpy(frame.data() + sizeof header, body.data(), body.size());
  return frame;
}

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

TEST(FuseRequest, NamesAreTakenUpToTheirEnd) {
  using namespace std::literals;
  const auto frame = frame_of(Opcode::kLookup, "na\nme\0"sv);
  auto request = parse_request(frame);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(std::get<NameArgs>(request->args).name, "na\nme");
  EXPECT_EQ(request->header.unique, 8u);
  EXPECT_FALSE(parse_request(frame_of(Opcode::kLookup, "name"sv)).has_value());  // no end
  EXPECT_FALSE(parse_request(frame_of(Opcode::kLookup, "\0"sv)).has_value());    // empty
  EXPECT_FALSE(parse_request(frame_of(Opcode::kLookup, ""sv)).has_value());
}

TEST(FuseRequest, ExtensionsAreNoPartOfTheArguments) {
  using namespace std::literals;
  const auto frame = frame_of(Opcode::kLookup, "ab\0........"sv, 1);
  auto request = parse_request(frame);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(std::get<NameArgs>(request->args).name, "ab");
  EXPECT_FALSE(parse_request(frame_of(Opcode::kLookup, "ab\0....."sv, 1)).has_value());  // they swallow the name
  EXPECT_FALSE(parse_request(frame_of(Opcode::kLookup, "ab\0"sv, 60000)).has_value());   // longer than the frame
}

TEST(FuseRequest, FixedArgumentsMustBeWhole) {
  ReadIn read{};
  read.fh = 7;
  read.offset = 4096;
  read.size = 131072;
  for (const auto opcode : {Opcode::kRead, Opcode::kReaddir, Opcode::kReaddirplus}) {
    auto request = parse_request(frame_of(opcode, bytes_of(read)));
    ASSERT_TRUE(request.has_value());
    EXPECT_EQ(std::get<ReadIn>(request->args).offset, 4096u);
    EXPECT_FALSE(parse_request(frame_of(opcode, bytes_of(read).substr(0, 39))).has_value());
  }
  for (const auto opcode : {Opcode::kGetattr, Opcode::kOpen, Opcode::kOpendir, Opcode::kRelease, Opcode::kReleasedir,
                            Opcode::kInterrupt, Opcode::kGetxattr, Opcode::kListxattr, Opcode::kInit}) {
    EXPECT_FALSE(parse_request(frame_of(opcode, "1234567")).has_value()) << opcode_name(static_cast<std::uint32_t>(opcode));
    EXPECT_TRUE(parse_request(frame_of(opcode, std::string(100, 'x') + '\0')).has_value());
  }
  EXPECT_FALSE(parse_request(frame_of(Opcode::kGetxattr, std::string(8, 'x'))).has_value());  // no name
}

TEST(FuseRequest, TheLengthFieldMustBeTrue) {
  auto frame = frame_of(Opcode::kStatfs, "");
  EXPECT_TRUE(parse_request(frame).has_value());
  frame.push_back(std::byte{0});
  InHeader header{};
  EXPECT_FALSE(parse_request(frame, &header).has_value());
  EXPECT_EQ(header.unique, 8u);  // known all the same: the error can be sent back
  EXPECT_FALSE(parse_request(std::span(frame).first(39)).has_value());
  EXPECT_FALSE(parse_request({}).has_value());
}

TEST(FuseRequest, RandomBytesNeverReachBeyondTheFrame) {
  Rng rng(20221);
  int good = 0;
  for (int round = 0; round < 200'000; ++round) {
    // On the heap and of exact size, so that a sanitizer sees a step too far.
    std::vector<std::byte> frame(rng.below(160));
    for (auto& byte : frame) byte = static_cast<std::byte>(rng.chance(0.3) ? 0 : rng.next());
    if (frame.size() >= sizeof(InHeader)) {
      InHeader header{};
      std::memcpy(&header, frame.data(), sizeof header);
      if (rng.chance(0.9)) header.len = static_cast<std::uint32_t>(frame.size());
      if (rng.chance(0.9)) header.opcode = static_cast<std::uint32_t>(rng.below(kOpcodeLimit + 2));
      if (rng.chance(0.8)) header.total_extlen = static_cast<std::uint16_t>(rng.below(4));
      std::memcpy(frame.data(), &header, sizeof header);
    }
    const auto request = parse_request(frame);
    if (!request) continue;
    ++good;
    const auto* begin = reinterpret_cast<const char*>(frame.data());
    std::string_view name;
    if (const auto* args = std::get_if<NameArgs>(&request->args)) name = args->name;
    if (const auto* xattr = std::get_if<XattrArgs>(&request->args)) name = xattr->name;
    if (name.empty()) continue;
    EXPECT_GE(name.data(), begin + sizeof(InHeader));
    EXPECT_LT(name.data() + name.size(), begin + frame.size());
    EXPECT_EQ(name.find('\0'), std::string_view::npos);
  }
  EXPECT_GT(good, 10'000);
}

TEST(FuseRequest, OpcodesHaveNames) {
  EXPECT_EQ(opcode_name(1), "LOOKUP");
  EXPECT_EQ(opcode_name(15), "READ");
  EXPECT_EQ(opcode_name(44), "READDIRPLUS");
  EXPECT_EQ(opcode_name(53), "COPY_FILE_RANGE_64");
  EXPECT_EQ(opcode_name(7), "UNKNOWN");
  EXPECT_EQ(opcode_name(4096), "UNKNOWN");
}

InitIn offer(std::uint32_t minor, std::uint64_t flags) {
  InitIn init{};
  init.major = 7;
  init.minor = minor;
  init.max_readahead = 131072;
  init.flags = static_cast<std::uint32_t>(flags);
  init.flags2 = static_cast<std::uint32_t>(flags >> 32);
  return init;
}

TEST(FuseInit, TakesWhatBothKnow) {
  const auto agreed = negotiate(offer(45, ~0ull), kProtocolMinor);
  ASSERT_TRUE(agreed.has_value());
  EXPECT_EQ(agreed->minor, 45u);
  for (const auto flag : {kAsyncRead, kDoReaddirplus, kReaddirplusAuto, kParallelDirops, kMaxPages, kHasResend, kAsyncDio,
                          kExplicitInvalData, kCacheSymlinks, kInitExt, kHasExpireOnly}) {
    EXPECT_TRUE(agreed->has(flag)) << flag;
  }
  EXPECT_FALSE(agreed->has(kAutoInvalData));
  EXPECT_FALSE(agreed->has(kPassthrough));
  const auto out = init_answer(*agreed);
  EXPECT_EQ(out.max_pages, 256);
  EXPECT_EQ(out.max_background, 64);
  EXPECT_EQ(out.congestion_threshold, 48);
  EXPECT_EQ(out.max_readahead, 131072u);
  EXPECT_EQ(out.time_gran, 1u);
  EXPECT_GE(out.max_write, 128u << 10);
  EXPECT_EQ((std::uint64_t{out.flags2} << 32) | out.flags, agreed->flags);
}

TEST(FuseInit, NewerKernelsAreMetAtOurVersionAndOlderOnesAtTheirs) {
  EXPECT_EQ(negotiate(offer(60, ~0ull), kProtocolMinor)->minor, kProtocolMinor);
  const auto old = negotiate(offer(27, ~0ull), kProtocolMinor);
  EXPECT_EQ(old->minor, 27u);
  EXPECT_FALSE(old->has(kMaxPages));
  EXPECT_EQ(init_answer(*old).max_pages, 0);
  EXPECT_EQ(old->max_read, 128u << 10);
  const auto capped = negotiate(offer(45, ~0ull), 39);
  EXPECT_EQ(capped->minor, 39u);
  EXPECT_FALSE(capped->has(kHasResend));
  EXPECT_TRUE(capped->has(kHasExpireOnly));
}

TEST(FuseInit, HighFlagsCountOnlyWhenTheyWereSent) {
  const auto agreed = negotiate(offer(45, ~0ull & ~kInitExt), kProtocolMinor);
  EXPECT_EQ(agreed->flags >> 32, 0u);
}

TEST(FuseInit, TooOldIsRefusedWithBothVersions) {
  for (const auto& bad : {negotiate(offer(22, 0), kProtocolMinor), negotiate(offer(45, 0), 12)}) {
    ASSERT_FALSE(bad.has_value());
    EXPECT_EQ(bad.error().code(), ErrorCode::kNotSupported);
    EXPECT_NE(bad.error().message().find("7.23"), std::string_view::npos);
  }
  auto other = offer(45, 0);
  other.major = 8;
  EXPECT_FALSE(negotiate(other, kProtocolMinor).has_value());
}

}  // namespace
}  // namespace thermo::fuse
