#include "front/fuse/encode.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>

namespace thermo::fuse {
namespace {

TEST(FuseEncode, ValidityIsCappedAndNeverNegative) {
  vfs::Entry entry;
  entry.node = 5;
  entry.valid = Nanos::max();
  EXPECT_EQ(encode_entry(entry).entry_valid, 365ull * 24 * 3600);
  EXPECT_EQ(encode_attr_answer(entry).attr_valid, 365ull * 24 * 3600);
  entry.valid = std::chrono::milliseconds(1500);
  EXPECT_EQ(encode_entry(entry).entry_valid, 1u);
  EXPECT_EQ(encode_entry(entry).attr_valid_nsec, 500'000'000u);
  entry.valid = Nanos(-1);
  EXPECT_EQ(encode_entry(entry).entry_valid, 0u);
  EXPECT_EQ(encode_entry(entry).entry_valid_nsec, 0u);
}

TEST(FuseEncode, ANegativeEntryHasNoNodeAndNoAttributes) {
  vfs::Entry entry;
  entry.valid = std::chrono::seconds(3);
  entry.attr.ino = 9;
  const auto out = encode_entry(entry);
  EXPECT_EQ(out.nodeid, 0u);
  EXPECT_EQ(out.entry_valid, 3u);
  EXPECT_EQ(out.attr_valid, 0u);
  EXPECT_EQ(out.attr.ino, 0u);
}

TEST(FuseEncode, TimesBefore1970) {
  vfs::Attr attr;
  attr.mtime = -1;
  const auto out = encode_attr(attr);
  EXPECT_EQ(static_cast<std::int64_t>(out.mtime), -1);
  EXPECT_EQ(out.mtimensec, 999'999'999u);
}

vfs::DirEntry dir_entry(std::string_view name, std::uint64_t cookie, vfs::NodeId node, std::uint32_t mode) {
  vfs::DirEntry entry;
  entry.name = name;
  entry.cookie = cookie;
  entry.entry.node = node;
  entry.entry.attr.ino = 1000 + node;
  entry.entry.attr.mode = mode;
  return entry;
}

TEST(FuseEncode, PlainFoldersArePackedToEightBytes) {
  std::array<std::byte, 96> buffer;
  buffer.fill(std::byte{0xff});
  DirPacker packer(buffer, false);
  ASSERT_TRUE(packer.add(dir_entry("abc", 1, 7, S_IFREG)));  // 24 + 3 -> 32
  EXPECT_EQ(packer.used(), 32u);
  ASSERT_TRUE(packer.add(dir_entry("12345678", 2, 8, S_IFDIR)));  // 24 + 8 -> 32
  EXPECT_EQ(packer.used(), 64u);
  EXPECT_FALSE(packer.add(dir_entry("123456789", 3, 9, S_IFDIR)));  // 40: does not fit
  EXPECT_EQ(packer.used(), 64u);
  ASSERT_TRUE(packer.add(dir_entry("z", 3, 9, S_IFREG)));
  EXPECT_EQ(packer.bytes().size(), 96u);
  Dirent first{};
  std::memcpy(&first, buffer.data(), sizeof first);
  EXPECT_EQ(first.ino, 1007u);
  EXPECT_EQ(first.off, 1u);
  EXPECT_EQ(first.namelen, 3u);
  EXPECT_EQ(first.type, 8u);  // DT_REG
  EXPECT_EQ(std::memcmp(buffer.data() + sizeof first, "abc\0\0\0\0\0", 8), 0);
}

TEST(FuseEncode, PlusFoldersCarryNodesExceptOfDotAndDotDot) {
  std::array<std::byte, 1024> buffer;
  DirPacker packer(buffer, true);
  for (const auto* name : {".", "..", "f"}) ASSERT_TRUE(packer.add(dir_entry(name, 1, 7, S_IFDIR | 0755)));
  const std::size_t step = 160;  // 152 + 1..2 -> 160
  ASSERT_EQ(packer.used(), 3 * step);
  for (std::size_t i = 0; i < 3; ++i) {
    DirentPlus record{};
    std::memcpy(&record, buffer.data() + i * step, sizeof record);
    EXPECT_EQ(record.entry.nodeid, i == 2 ? 7u : 0u);
    EXPECT_EQ(record.entry.attr.ino, 1007u);
    EXPECT_EQ(record.dirent.type, 4u);  // DT_DIR
  }
}

TEST(FuseEncode, Statfs) {
  const auto out = encode_statfs({8192, 4096, 77});
  EXPECT_EQ(out.blocks, 2u);
  EXPECT_EQ(out.bavail, 1u);
  EXPECT_EQ(out.files, 77u);
  EXPECT_EQ(out.namelen, 255u);
}

}  // namespace
}  // namespace thermo::fuse
