#include "dssync/collective/program/schedule_program.h"

#include <gtest/gtest.h>

namespace dssync {
namespace {

// Round 0 and round 2 are equal.
Schedule cycle_of_three() {
  const Round pairs{"pairs", {{0, 1}, {2, 3}}};
  return {pairs, {"all", {{0, 1, 2, 3}}}, pairs};
}

using Slices = std::vector<ScheduledSlice>;

TEST(ScheduleProgramTest, OneShardFollowsTheRounds) {
  const ScheduleProgram program(cycle_of_three(), 1);
  EXPECT_EQ(program.slices(10, 0), (Slices{{0, 10, 0}}));
  EXPECT_EQ(program.slices(10, 1), (Slices{{0, 10, 1}}));
  EXPECT_EQ(program.slices(10, 2), (Slices{{0, 10, 0}}));
  EXPECT_EQ(program.slices(10, 3), (Slices{{0, 10, 0}}));
}

TEST(ScheduleProgramTest, ShardsTouchAllRoundsAndEqualNeighboursAreOne) {
  const ScheduleProgram program(cycle_of_three(), 3);
  EXPECT_EQ(program.slices(9, 0), (Slices{{0, 3, 0}, {3, 6, 1}, {6, 9, 0}}));
  EXPECT_EQ(program.slices(9, 1), (Slices{{0, 3, 1}, {3, 9, 0}}));
  EXPECT_EQ(program.slices(9, 2), (Slices{{0, 6, 0}, {6, 9, 1}}));
}

TEST(ScheduleProgramTest, FewerElementsThanShardsAreAllCovered) {
  const ScheduleProgram program(cycle_of_three(), 8);
  for (std::int64_t iteration = 0; iteration < 6; ++iteration) {
    const Slices slices = program.slices(3, iteration);
    std::int64_t at = 0;
    for (const ScheduledSlice& slice : slices) {
      EXPECT_EQ(slice.begin, at);
      EXPECT_LT(slice.begin, slice.end);
      at = slice.end;
    }
    EXPECT_EQ(at, 3);
  }
  EXPECT_TRUE(program.slices(0, 0).empty());
}

TEST(ScheduleProgramTest, APeriodTouchesOnePartForAWholeCycle) {
  const ScheduleProgram program(cycle_of_three(), 1);
  EXPECT_EQ(program.slices(10, 0, 2), (Slices{{0, 5, 0}}));
  EXPECT_EQ(program.slices(10, 1, 2), (Slices{{0, 5, 1}}));
  EXPECT_EQ(program.slices(10, 2, 2), (Slices{{0, 5, 0}}));
  EXPECT_EQ(program.slices(10, 3, 2), (Slices{{5, 10, 0}}));
  EXPECT_EQ(program.slices(10, 6, 2), (Slices{{0, 5, 0}}));
}

// A period that shares a factor with the cycle must not keep elements from a round for ever.
TEST(ScheduleProgramTest, EveryElementMeetsEveryRoundWhateverThePeriod) {
  const Schedule schedule = {
      {"a", {{0, 1}, {2, 3}}}, {"b", {{0, 2}, {1, 3}}}, {"c", {{0, 3}, {1, 2}}}, {"d", {{0, 1, 2, 3}}}};
  for (const int shards : {1, 3, 4}) {
    for (const int period : {1, 2, 3, 4, 8}) {
      std::vector<std::vector<int>> met(40, std::vector<int>(4));
      for (std::int64_t iteration = 0; iteration < 4 * period; ++iteration) {
        for (const ScheduledSlice& slice : ScheduleProgram(schedule, shards).slices(40, iteration, period)) {
          for (std::int64_t at = slice.begin; at < slice.end; ++at) ++met[static_cast<std::size_t>(at)][slice.round];
        }
      }
      for (const std::vector<int>& rounds : met)
        EXPECT_EQ(rounds, (std::vector<int>{1, 1, 1, 1})) << shards << " " << period;
    }
  }
}

}  // namespace
}  // namespace dssync
