#include "dssync/planner/grid.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace dssync {
namespace {

TEST(GridTest, DigitsAreFewAndSmallEnough) {
  EXPECT_EQ(grid_digits(8, 2), (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(grid_digits(8, 4), (std::vector<int>{2, 4}));
  EXPECT_EQ(grid_digits(64, 8), (std::vector<int>{8, 8}));
  EXPECT_EQ(grid_digits(12, 4), (std::vector<int>{3, 4}));
  EXPECT_EQ(grid_digits(36, 6), (std::vector<int>{6, 6}));
  EXPECT_EQ(grid_digits(7, 7), (std::vector<int>{7}));
  EXPECT_TRUE(grid_digits(7, 6).empty());
  EXPECT_TRUE(grid_digits(22, 10).empty());
  EXPECT_TRUE(grid_digits(1, 2).empty());
}

TEST(GridTest, RoundsGroupWhatDiffersInOneDigit) {
  const std::vector<Division> rounds = grid_rounds({2, 3});
  ASSERT_EQ(rounds.size(), 2U);
  EXPECT_EQ(rounds[0], (Division{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(rounds[1], (Division{{0, 2, 4}, {1, 3, 5}}));
}

TEST(GridTest, UnevenGridDealsBlockByBlock) {
  // 7 things in groups of at most 3: ceil(7 / 3) = 3, so two blocks of 4 and 3, and a deal into 3 hands.
  const std::vector<Division> rounds = mixing_rounds(7, 3);
  EXPECT_EQ(rounds.back(), (Division{{0, 3, 6}, {1, 4}, {2, 5}}));
}

TEST(GridTest, EveryRoundIsADivisionWithinTheLimit) {
  for (int n = 1; n <= 200; ++n) {
    for (int g = 2; g <= 9; ++g) {
      for (const Division& division : mixing_rounds(n, g)) {
        std::set<int> seen;
        for (const std::vector<int>& group : division) {
          EXPECT_LE(static_cast<int>(group.size()), g);
          for (const int thing : group) {
            EXPECT_TRUE(thing >= 0 && thing < n && seen.insert(thing).second) << n << " " << g;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace dssync
