#include "read/footer.h"

#include <gtest/gtest.h>

#include <string>

namespace thermo::read {
namespace {

std::optional<std::uint32_t> length_of(const std::string& text) { return parquet_footer_length(std::as_bytes(std::span(text))); }

TEST(Footer, LengthIsLittleEndianBeforeTheMagic) {
  EXPECT_EQ(length_of(std::string("\x01\x02\x03\x04PAR1", 8)), 0x04030201u);
  EXPECT_EQ(length_of("anything before" + std::string("\x07\0\0\0PAR1", 8)), 7u);
  EXPECT_EQ(length_of(std::string("\xff\xff\xff\xffPAR1", 8)), 0xffffffffu);
}

TEST(Footer, OtherBytesAreNotAFooter) {
  EXPECT_EQ(length_of(""), std::nullopt);
  EXPECT_EQ(length_of("\x01PAR1"), std::nullopt);
  EXPECT_EQ(length_of(std::string("\x01\0\0\0PARE", 8)), std::nullopt);
  EXPECT_EQ(length_of(std::string("\x01\0\0\0PAR1x", 9)), std::nullopt);
}

TEST(Footer, NamesInAnyCase) {
  for (const auto* name : {"a.parquet", "A.PARQUET", "x.y.Orc", ".orc"}) EXPECT_TRUE(has_footer(name)) << name;
  for (const auto* name : {"", "orc", "parquet", "a.parquet.crc", "a.orc2", "a_orc"}) EXPECT_FALSE(has_footer(name)) << name;
}

}  // namespace
}  // namespace thermo::read
