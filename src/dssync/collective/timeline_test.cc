#include "dssync/collective/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dssync {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TimelineTest, KeepsTheFirstSpansAndCountsTheRest) {
  Timeline timeline(2);
  for (int number = 0; number < 5; ++number)
    timeline.record({.kind = Span::Kind::kCompute, .name = "step", .iteration = number});
  EXPECT_EQ(timeline.spans().size(), 2U);
  EXPECT_EQ(timeline.spans().back().iteration, 1);
  EXPECT_EQ(timeline.dropped(), 3U);
}

TEST(TimelineTest, EventsCountFromTheOriginAndNameTheMembers) {
  const Clock::time_point origin = Clock::now();
  const Span stage{.kind = Span::Kind::kStage,
                   .name = "all-reduce",
                   .iteration = 4,
                   .start = origin + microseconds(10),
                   .end = origin + microseconds(35),
                   .round = 2,
                   .members = {1, 5},
                   .bytes = 640};
  const std::string events = trace_events({stage}, 5, origin);
  EXPECT_THAT(events, HasSubstr(R"("name":"all-reduce","cat":"stage","ph":"X","pid":5,"tid":1,"ts":10.0,"dur":25.0)"));
  EXPECT_THAT(events, HasSubstr(R"("iteration":4,"round":2,"bytes":640,"members":[1,5])"));
}

TEST(TimelineTest, AChangeOfThePlanSaysWhyInTheTrainingTrack) {
  const Clock::time_point origin = Clock::now();
  const Span change{
      .kind = Span::Kind::kChange, .name = "new plan: \"a\\b\"\n", .iteration = 7, .start = origin, .end = origin};
  const std::string events = trace_events({change}, 3, origin);
  EXPECT_THAT(events, HasSubstr(R"("name":"new plan: \"a\\b\"\u000a","cat":"plan","ph":"X","pid":3,"tid":0)"));
}

TEST(TimelineTest, OverlappingStagesGetTracksOfTheirOwn) {
  const Clock::time_point origin = Clock::now();
  const auto stage = [&](int start, int end) {
    return Span{.kind = Span::Kind::kStage,
                .name = "s",
                .start = origin + microseconds(start),
                .end = origin + microseconds(end),
                .round = 0,
                .members = {0, 1},
                .bytes = 1};
  };
  const std::string events = trace_events({stage(0, 10), stage(5, 15), stage(12, 20)}, 0, origin);
  EXPECT_THAT(events, HasSubstr(R"("tid":1,"ts":0.0)"));
  EXPECT_THAT(events, HasSubstr(R"("tid":2,"ts":5.0)"));
  EXPECT_THAT(events, HasSubstr(R"("tid":1,"ts":12.0)"));
  EXPECT_THAT(events, Not(HasSubstr(R"("tid":3)")));
}

}  // namespace
}  // namespace dssync
