#include "s3sim/xml.h"

#include <gtest/gtest.h>

#include <chrono>

namespace thermo::s3sim {
namespace {

TEST(Xml, EntitiesAreReadAndWhatIsNoneStays) {
  EXPECT_EQ(xml_text("<E>&lt;a&#x20AC;&#65;&amp;</E>", "E"),
            "<a\xe2\x82\xac"
            "A&");
  EXPECT_EQ(xml_text("<E>&bogus; & &#x110000; &#0000000000000065;</E>", "E"), "&bogus; & &#x110000; &#0000000000000065;");
}

// A client may send megabytes of them.
TEST(Xml, BareAmpersandsTakeNoLongerThanOtherText) {
  const std::string text(4u << 20, '&');
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(xml_text("<E>" + text + "</E>", "E"), text);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace thermo::s3sim
