// Bad stores: what they say stays an error and never becomes "does not exist".

#include <fstream>

#include "base/rng.h"
#include "support.h"

namespace thermo::catalog::test {
namespace {

using std::chrono::seconds;

TEST_F(CatalogTest, ThrottledStoreIsNeverAbsence) {
  store_->write("d/f");
  std::atomic<bool> throttled{true};
  store_->after = [&](const store::ListRequest&, Result<store::ListPage>& page) {
    if (throttled) page = fail(ErrorCode::kThrottled, "SlowDown");
  };
  for (int i = 0; i < 5; ++i) EXPECT_EQ(view_->lookup({}, "d/", "f").error().code(), ErrorCode::kThrottled);
  EXPECT_EQ(names_in(*view_, "d/").error().code(), ErrorCode::kThrottled);
  throttled = false;
  EXPECT_EQ(file("d/", "f").key, "d/f");
  EXPECT_EQ(names("d/"), Names{"f"});
}

TEST_F(CatalogTest, ExpiredAndUnreachableIsTheStoresError) {
  store_->write("d/f");
  (void)names("d/");
  EXPECT_EQ(look("d/", "absent"), std::nullopt);
  settle();
  store_->after = [](const store::ListRequest&, Result<store::ListPage>& page) {
    page = fail(ErrorCode::kUnavailable, "connection refused");
  };
  EXPECT_TRUE(look("d/", "f")) << "still fresh";
  clock_.advance(seconds(61));
  EXPECT_EQ(view_->lookup({}, "d/", "f").error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(view_->lookup({}, "d/", "absent").error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(names_in(*view_, "d/").error().code(), ErrorCode::kUnavailable);
  settle();
  store_->after = nullptr;
  EXPECT_TRUE(look("d/", "f"));
}

TEST_F(CatalogTest, RandomBurstsNeverLie) {
  for (int i = 0; i < 200; ++i) store_->write("d" + std::to_string(i % 10) + "/f" + std::to_string(i));
  Rng rng(99);
  Mutex mutex(LockRank::kLeaf, "rng");
  store_->after = [&](const store::ListRequest&, Result<store::ListPage>& page) {
    MutexLock lock(mutex);
    if (rng.chance(0.4)) page = fail(rng.chance(0.5) ? ErrorCode::kThrottled : ErrorCode::kTimeout, "burst");
  };
  int answered = 0;
  for (int i = 0; i < 2000; ++i) {
    clock_.advance(seconds(7));
    const int n = (i * 37) % 200;
    const auto found = view_->lookup({}, "d" + std::to_string(n % 10) + "/", "f" + std::to_string(n));
    if (!found) continue;
    ++answered;
    ASSERT_TRUE(found->entry) << i;
    ASSERT_EQ(std::get<File>(*found->entry).key, "d" + std::to_string(n % 10) + "/f" + std::to_string(n));
    const auto listed = names_in(*view_, "d" + std::to_string(n % 10) + "/");
    if (listed) {
      ASSERT_EQ(listed->size(), 20u) << i;
    }
  }
  EXPECT_GT(answered, 200);
}

TEST_F(CatalogTest, DeniedIsDenied) {
  store_->after = [](const store::ListRequest&, Result<store::ListPage>& page) { page = fail(ErrorCode::kAccessDenied, "403"); };
  EXPECT_EQ(view_->lookup({}, "", "x").error().code(), ErrorCode::kAccessDenied);
  EXPECT_EQ(names_in(*view_, "").error().code(), ErrorCode::kAccessDenied);
}

TEST_F(CatalogTest, PageThatLeavesItsPrefixIsRefusedAndKeepsNothing) {
  for (const char* key : {"d/a", "d/b", "d/c"}) store_->write(key);
  store_->after = [](const store::ListRequest& request, Result<store::ListPage>& page) {
    if (page && request.prefix == "d/" && page->objects.size() > 2) page->objects[1].key = "c/b";
  };
  EXPECT_EQ(names_in(*view_, "d/").error().code(), ErrorCode::kCorrupt);
  settle();
  store_->after = nullptr;
  EXPECT_EQ(names("d/"), (Names{"a", "b", "c"}));
}

TEST_F(CatalogTest, EmptyPageThatClaimsToGoOnEnds) {
  store_->write("d/a");
  store_->after = [](const store::ListRequest&, Result<store::ListPage>& page) {
    page->objects.clear();
    page->prefixes.clear();
    page->truncated = true;
    page->continuation = "again";
  };
  EXPECT_EQ(names_in(*view_, "d/").error().code(), ErrorCode::kCorrupt);
  EXPECT_FALSE(view_->lookup({}, "d/", "a"));
  settle();
  store_->after = nullptr;
  EXPECT_TRUE(look("d/", "a"));
}

TEST_F(CatalogTest, BrokenBigListingIsNoListing) {
  for (int i = 0; i < 5000; ++i) store_->write("d/f" + std::to_string(10'000 + i));
  store_->after = [](const store::ListRequest& request, Result<store::ListPage>& page) {
    if (request.start_after > "d/f12") page = fail(ErrorCode::kCorrupt, "key count does not match");
  };
  EXPECT_EQ(names_in(*view_, "d/").error().code(), ErrorCode::kCorrupt);
  settle();
  store_->after = nullptr;
  EXPECT_EQ(file("d/", "f14999").key, "d/f14999");
  EXPECT_EQ(names("d/").size(), 5000u);
}

TEST_F(CatalogTest, DeadlineEndsTheWait) {
  store_->write("d/f");
  store_->delay = Millis(300);
  RequestContext hurried;
  std::stop_source stop;
  hurried.stop = stop.get_token();
  stop.request_stop();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(view_->lookup(hurried, "d/", "f").error().code(), ErrorCode::kCancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - start, Millis(250) * kPatience);
  EXPECT_TRUE(look("d/", "f"));
}

TEST_F(CatalogTest, OneGivesUpTheOtherGetsHisAnswer) {
  store_->write("d/f");
  store_->delay = Millis(100);
  std::stop_source stop;
  std::thread impatient([&] {
    RequestContext ctx;
    ctx.stop = stop.get_token();
    (void)view_->lookup(ctx, "d/", "f");
  });
  std::this_thread::sleep_for(Millis(20));
  std::thread patient([&] { EXPECT_TRUE(look("d/", "f")); });
  stop.request_stop();
  impatient.join();
  patient.join();
  EXPECT_LE(take_lists(), 3);
}

TEST_F(CatalogTest, ShutdownInTheMiddleOfAListing) {
  for (int i = 0; i < 3000; ++i) store_->write("d/f" + std::to_string(10'000 + i));
  store_->delay = Millis(50);
  std::thread reader([&] { (void)names_in(*view_, "d/"); });
  std::this_thread::sleep_for(Millis(70));
  catalog_->shutdown();
  reader.join();
}

}  // namespace
}  // namespace thermo::catalog::test
