// Whose turn it is.
#include "dssync/planner/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dssync {
namespace {

using ::testing::ElementsAre;

const Round kPairs{"pairs", {{0, 1}, {2, 3}}};
const Round kAll{"all", {{0, 1, 2, 3}}};
const Round kCrossed{"crossed", {{0, 2}, {1, 3}}};

TEST(CycleTest, TheFirstOfEqualRoundsStandsForAll) {
  Round again = kPairs;
  again.label = "again";  // only groups count
  const Cycle cycle({kPairs, kAll, again, kCrossed, kAll});
  EXPECT_EQ(cycle.length(), 5U);
  EXPECT_THAT(cycle.distinct(), ElementsAre(0, 1, 3));
  std::vector<std::size_t> first;
  std::vector<std::size_t> kinds;
  for (std::size_t round = 0; round < cycle.length(); ++round) {
    first.push_back(cycle.first_equal(round));
    kinds.push_back(cycle.kind_of(round));
  }
  EXPECT_THAT(first, ElementsAre(0, 1, 0, 3, 1));
  EXPECT_THAT(kinds, ElementsAre(0, 1, 0, 2, 1));
}

TEST(CycleTest, EveryShardIsOneRoundAheadOfTheOneBefore) {
  const Cycle cycle({kPairs, kAll, kPairs, kCrossed});
  const auto rounds = [&](int shard) {
    std::vector<std::size_t> used;
    for (std::int64_t iteration = 0; iteration < 5; ++iteration) used.push_back(cycle.round_at(iteration, shard));
    return used;
  };
  EXPECT_THAT(rounds(0), ElementsAre(0, 1, 0, 3, 0));
  EXPECT_THAT(rounds(1), ElementsAre(1, 0, 3, 0, 1));
  EXPECT_THAT(rounds(7), ElementsAre(3, 0, 1, 0, 3));
}

TEST(CycleTest, CountsWholeCycles) {
  const Cycle cycle({kPairs, kAll, kCrossed});
  EXPECT_EQ(cycle.cycles_before(2, 0), 0);
  EXPECT_EQ(cycle.cycles_before(2, 1), 1);
  EXPECT_EQ(cycle.cycles_before(3, 0), 1);
  EXPECT_EQ(cycle.cycles_before(5'000'000'000, 1), 1'666'666'667);
}

TEST(CycleTest, KnowsWhenEveryoneLastAveragedAShard) {
  const Cycle cycle({kPairs, kAll, kCrossed, kPairs});
  const auto since = [&](const Cycle& rounds, int shard) {
    std::vector<std::int64_t> result;
    for (std::int64_t iteration = 0; iteration < 7; ++iteration) {
      result.push_back(rounds.since_common(iteration, shard));
    }
    return result;
  };
  EXPECT_THAT(since(cycle, 0), ElementsAre(1, 2, 1, 2, 3, 4, 1));
  EXPECT_THAT(since(cycle, 1), ElementsAre(1, 1, 2, 3, 4, 1, 2));
  EXPECT_THAT(since(Cycle({kPairs, kCrossed}), 0), ElementsAre(1, 2, 2, 2, 2, 2, 2));
  EXPECT_THAT(since(Cycle({kAll}), 3), ElementsAre(1, 1, 1, 1, 1, 1, 1));
}

TEST(CycleTest, IterationsAreAlikeWithAMultipleOfTheLength) {
  const Cycle cycle({kPairs, kAll, kCrossed});
  EXPECT_EQ(cycle.period(1), 3U);
  EXPECT_EQ(cycle.period(3), 1U);
  EXPECT_EQ(cycle.period(4), 3U);
  EXPECT_EQ(cycle.period(6), 1U);
}

}  // namespace
}  // namespace dssync
