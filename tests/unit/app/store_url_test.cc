#include "app/store_url.h"

#include <gtest/gtest.h>

namespace thermo::app {
namespace {

TEST(StoreUrl, WhatIsPrintedReadsBackTheSame) {
  for (const char* text : {"s3://bkt", "s3://bkt/a", "s3://bkt/a/", "s3://bkt//", "s3://bkt//x", "s3://bkt/a//", "s3://bkt/a///",
                           "file:///", "file:///srv/tables/"}) {
    const auto url = parse_store_url(text, false);
    ASSERT_TRUE(url) << text;
    const auto again = parse_store_url(url->text(), false);
    ASSERT_TRUE(again) << url->text();
    EXPECT_EQ(*again, *url) << text << " was printed as " << url->text();
  }
}

TEST(StoreUrl, PrefixIsPrintedWithoutItsSlash) {
  EXPECT_EQ(parse_store_url("s3://bkt/a/b/", false)->text(), "s3://bkt/a/b");
  EXPECT_EQ(parse_store_url("bkt:a/b", true)->text(), "s3://bkt/a/b");
  EXPECT_EQ(parse_store_url("bkt:", true)->text(), "s3://bkt");
}

}  // namespace
}  // namespace thermo::app
