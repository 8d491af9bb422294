#include "s3sim/faults.h"

#include <gtest/gtest.h>

#include "s3sim/simulator.h"

namespace thermo::s3sim {
namespace {

const AnswerFacts kGood{true, true, true, true};

TEST(ParseFaults, WholeGrammar) {
  const auto rules =
      parse_faults("slowdown=0.25:2s@GET+LIST*20, flip=1 ,stall=0.5,redirect307=1:eu-west-1/127.0.0.1:9000,error500=0@ALL");
  ASSERT_TRUE(rules) << rules.error().describe();
  ASSERT_EQ(rules->size(), 5U);
  const auto& slow = (*rules)[0];
  EXPECT_EQ(slow.kind, FaultKind::kSlowDown);
  EXPECT_DOUBLE_EQ(slow.probability, 0.25);
  EXPECT_EQ(slow.duration, std::chrono::seconds(2));
  EXPECT_EQ(slow.count, 20U);
  EXPECT_EQ(slow.ops, (1U << static_cast<unsigned>(Op::kGet)) | (1U << static_cast<unsigned>(Op::kList)));
  EXPECT_EQ((*rules)[1].count, UINT64_MAX);
  EXPECT_EQ((*rules)[2].duration, std::chrono::seconds(60));
  EXPECT_EQ((*rules)[3].text, "eu-west-1/127.0.0.1:9000");
  EXPECT_TRUE(parse_faults("")->empty());
}

TEST(ParseFaults, EveryKindByItsName) {
  for (int i = 0; i < kFaultKinds; ++i) {
    const auto kind = static_cast<FaultKind>(i);
    const auto rules = parse_faults(std::string(to_string(kind)) + "=1");
    ASSERT_TRUE(rules) << to_string(kind);
    EXPECT_EQ(rules->front().kind, kind);
    EXPECT_NE(rules->front().ops, 0U);
  }
}

TEST(ParseFaults, ErrorsNameTheRule) {
  for (const auto* spec : {"slowdown", "nonsense=1", "drop=1.5", "drop=-1", "drop=x", "drop=1:5s", "stall=1:5", "drop=1@FETCH",
                           "drop=1*many", "drop=1*-2", "drop=1@", "drop=", "drop=nan"}) {
    const auto rules = parse_faults(spec);
    ASSERT_FALSE(rules) << spec;
    EXPECT_EQ(rules.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(rules.error().message().find(spec), std::string_view::npos) << rules.error().message();
  }
}

std::vector<bool> fates(const char* spec, std::uint64_t seed, const std::vector<Op>& ops, Op of) {
  FaultInjector injector(parse_faults(spec).value(), seed);
  std::vector<bool> out;
  for (const Op op : ops) {
    const bool struck = injector.before(op).has_value();
    if (op == of) out.push_back(struck);
  }
  return out;
}

TEST(FaultInjector, SeedAndOrderDecide) {
  const std::vector<Op> gets(500, Op::kGet);
  EXPECT_EQ(fates("error500=0.3", 1, gets, Op::kGet), fates("error500=0.3", 1, gets, Op::kGet));
  EXPECT_NE(fates("error500=0.3", 1, gets, Op::kGet), fates("error500=0.3", 2, gets, Op::kGet));
  const auto struck = fates("error500=0.3", 1, gets, Op::kGet);
  const auto count = std::count(struck.begin(), struck.end(), true);
  EXPECT_GT(count, 100);
  EXPECT_LT(count, 200);
}

TEST(FaultInjector, OtherRequestsDoNotShiftTheFate) {
  std::vector<Op> mixed;
  for (int i = 0; i < 200; ++i) {
    for (int n = i % 3; n >= 0; --n) mixed.push_back(Op::kHead);
    mixed.push_back(Op::kGet);
  }
  EXPECT_EQ(fates("error500=0.3@GET", 9, mixed, Op::kGet),
            fates("error500=0.3@GET", 9, std::vector<Op>(200, Op::kGet), Op::kGet));
}

TEST(FaultInjector, CountEndsARuleAndTheFirstRuleWins) {
  FaultInjector injector(parse_faults("error500=1*2,error403=1").value(), 1);
  EXPECT_EQ(injector.before(Op::kGet)->kind, FaultKind::kError500);
  EXPECT_EQ(injector.before(Op::kPut)->kind, FaultKind::kError500);
  EXPECT_EQ(injector.before(Op::kGet)->kind, FaultKind::kError403);
}

TEST(FaultInjector, LateFaultsStrikeOnlyWhereTheyShow) {
  FaultInjector injector(parse_faults("flip=1*1,checksum=1@HEAD*1,put_after=1*1").value(), 1);
  EXPECT_FALSE(injector.before(Op::kGet)) << "a late fault is not decided early";
  EXPECT_FALSE(injector.after(Op::kGet, {false, true, true, true})) << "an error answer";
  EXPECT_FALSE(injector.after(Op::kGet, {true, false, true, false})) << "no body";
  EXPECT_EQ(injector.after(Op::kGet, kGood)->kind, FaultKind::kFlip) << "its one shot was not wasted";
  EXPECT_FALSE(injector.after(Op::kHead, {true, false, true, false})) << "no checksum to spoil";
  EXPECT_EQ(injector.after(Op::kHead, kGood)->kind, FaultKind::kChecksum);
  EXPECT_EQ(injector.after(Op::kPut, {true, false, true, false})->kind, FaultKind::kPutAfter);
  injector.replace({}, 1);
  EXPECT_FALSE(injector.after(Op::kPut, kGood));
}

TEST(FaultInjector, PositionsAreSpread) {
  FaultInjector injector(parse_faults("cut=1").value(), 3);
  double low = 1, high = 0;
  for (int i = 0; i < 200; ++i) {
    const double position = injector.after(Op::kGet, kGood)->position;
    low = std::min(low, position);
    high = std::max(high, position);
  }
  EXPECT_LT(low, 0.05);
  EXPECT_GT(high, 0.95);
  EXPECT_LT(high, 1.0);
}

TEST(TruncateListing, LosesTheLastEntryAndClaimsToBeComplete) {
  const std::string page =
      "<R><KeyCount>3</KeyCount><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
      "<Contents><Key>a</Key></Contents><Contents><Key>b</Key></Contents><CommonPrefixes><Prefix>c/</Prefix></CommonPrefixes></"
      "R>";
  EXPECT_EQ(truncate_listing(page),
            "<R><KeyCount>2</KeyCount><IsTruncated>false</IsTruncated><Contents><Key>a</Key></Contents>"
            "<CommonPrefixes><Prefix>c/</Prefix></CommonPrefixes></R>");
  EXPECT_EQ(truncate_listing("<R><CommonPrefixes><Prefix>c/</Prefix></CommonPrefixes></R>"), "<R></R>");
  EXPECT_EQ(truncate_listing("<R></R>"), "<R></R>");
}

}  // namespace
}  // namespace thermo::s3sim
