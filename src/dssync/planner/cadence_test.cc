#include "dssync/planner/cadence.h"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace dssync {
namespace {

TEST(CadenceTest, MeanAge) {
  EXPECT_EQ(mean_age(0b1111, 4), 0);
  EXPECT_EQ(mean_age(0b0001, 4), 1.5);   // 0 1 2 3
  EXPECT_EQ(mean_age(0b1000, 4), 1.5);   // the same a little later
  EXPECT_EQ(mean_age(0b0101, 4), 0.5);   // 0 1 0 1
  EXPECT_EQ(mean_age(0b10011, 5), 0.6);  // 0 0 1 2 0
  EXPECT_TRUE(std::isinf(mean_age(0, 4)));
}

// Against all ways to add that many slots.
TEST(CadenceTest, SpreadsAsEvenlyAsPossible) {
  for (int length = 1; length <= 9; ++length) {
    for (Slots taken = 0; taken < Slots{1} << length; ++taken) {
      for (int count = taken == 0 ? 1 : 0; count <= length - std::popcount(taken); ++count) {
        double best = std::numeric_limits<double>::infinity();
        for (Slots added = 0; added < Slots{1} << length; ++added) {
          if ((added & taken) == 0 && std::popcount(added) == count) {
            best = std::min(best, mean_age(taken | added, length));
          }
        }
        const Slots added = spread(taken, count, length);
        EXPECT_EQ(std::popcount(added), count);
        EXPECT_EQ(added & taken, 0U);
        EXPECT_DOUBLE_EQ(mean_age(taken | added, length), best) << length << " " << taken << " " << count;
      }
    }
  }
}

TEST(CadenceTest, WorksUpToTheLongestCycle) {
  EXPECT_EQ(mean_age(spread(0, 2, kMaxCycle), kMaxCycle), 15.5);
  EXPECT_EQ(std::popcount(spread(1, 63, kMaxCycle)), 63);
}

// Eight parts as a hypercube, one axis per round: 0.5 per worker (docs/mixing.md).
TEST(CadenceTest, HypercubeOfPairs) {
  CadenceBook book;
  const Shape shape{8, {{2, 2, 2}}};
  double best = std::numeric_limits<double>::infinity();
  for (const Cadence& cadence : book.page(shape).cadences(3, 0)) {
    if (cadence.whole == 0) {
      best = std::min(best, cadence.disagreement);
    }
  }
  EXPECT_DOUBLE_EQ(best, 4);
}

TEST(CadenceTest, InheritedRoundsCount) {
  CadenceBook book;
  const std::vector<Cadence>& cadences = book.page({4, {}}).cadences(4, 0b0001);
  EXPECT_EQ(cadences.size(), 4U);  // 0 to 3 rounds of its own
  EXPECT_EQ(cadences.front().disagreement, 0);
  EXPECT_EQ(cadences.back().disagreement, 3 * 1.5);
}

}  // namespace
}  // namespace dssync
