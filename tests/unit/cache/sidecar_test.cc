#include "cache/sidecar.h"

#include <gtest/gtest.h>

#include "cache/layout.h"

namespace thermo::cache {
namespace {

ObjectRef ref_of(std::uint64_t size) { return {{1, 2}, "s3://h/b", "quotes/Price.dat", "\"e\"", size}; }

TEST(Sidecar, HeaderReadsBackAsItWasWritten) {
  for (const std::uint64_t size : {kSmallObjectBytes + 1, kPageBytes, kLargestObjectBytes}) {
    const auto written = encode_sidecar_header(ref_of(size));
    ASSERT_TRUE(written && written->size() == kSidecarHeaderBytes);
    const auto read = parse_sidecar_header(std::as_bytes(std::span(*written)));
    ASSERT_TRUE(read) << size;
    EXPECT_EQ(read->size, size);
    EXPECT_EQ(read->key, "quotes/Price.dat");
    const SidecarLayout layout(size);
    EXPECT_EQ(layout.crc_at(block_count(size) - 1) + 4, layout.total);
  }
}

// With sizes near 2^64 the arithmetic of pages wraps round: a header that claims one is damaged, whatever its checksum says.
TEST(Sidecar, SizesThatNoObjectHasAreRefused) {
  for (const std::uint64_t size : {std::uint64_t{0}, kSmallObjectBytes, kLargestObjectBytes + 1, UINT64_MAX - 1, UINT64_MAX}) {
    const auto written = encode_sidecar_header(ref_of(size));
    ASSERT_TRUE(written);
    const auto read = parse_sidecar_header(std::as_bytes(std::span(*written)));
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().code(), ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace thermo::cache
