// Rates worked out by hand.
#include "dssync/training/learning_rate.h"

#include <gtest/gtest.h>

namespace dssync {
namespace {

TEST(LearningRateTest, ClimbsInEqualStepsToThePeak) {
  const LearningRate rate{0.4, 4, 12};
  EXPECT_DOUBLE_EQ(rate.at(0), 0.1);
  EXPECT_DOUBLE_EQ(rate.at(1), 0.2);
  EXPECT_DOUBLE_EQ(rate.at(2), 0.3);
  EXPECT_DOUBLE_EQ(rate.at(3), 0.4);
}

TEST(LearningRateTest, FallsAsHalfACosine) {
  const LearningRate rate{0.4, 4, 12};
  EXPECT_DOUBLE_EQ(rate.at(4), 0.4);                                   // cos 0
  EXPECT_NEAR(rate.at(6), 0.4 * (1 + 0.7071067811865476) / 2, 1e-12);  // cos 45 degrees
  EXPECT_NEAR(rate.at(8), 0.2, 1e-12);                                 // cos 90 degrees
  EXPECT_NEAR(rate.at(10), 0.4 * (1 - 0.7071067811865476) / 2, 1e-12);
}

TEST(LearningRateTest, EndsNearlyButNotAtZero) {
  const LearningRate rate{0.1, 0, 1000};
  EXPECT_GT(rate.at(999), 0);
  EXPECT_LT(rate.at(999), 1e-6);
  EXPECT_EQ(rate.at(1000), 0);
}

TEST(LearningRateTest, FallsToTheFinalRateAndStays) {
  LearningRate rate{0.4, 4, 12};
  rate.final = 0.1;
  EXPECT_NEAR(rate.at(8), 0.25, 1e-12);
  rate.fallen_at = 8;
  EXPECT_DOUBLE_EQ(rate.at(4), 0.4);
  EXPECT_NEAR(rate.at(6), 0.25, 1e-12);
  for (const int iteration : {8, 9, 11}) EXPECT_DOUBLE_EQ(rate.at(iteration), 0.1);
  rate.final = 0.4;
  for (const int iteration : {4, 6, 11}) EXPECT_DOUBLE_EQ(rate.at(iteration), 0.4);
}

TEST(LearningRateTest, WithoutWarmUpStartsAtThePeak) { EXPECT_DOUBLE_EQ((LearningRate{0.1, 0, 10}.at(0)), 0.1); }

TEST(LearningRateTest, AWarmUpAsLongAsTheRunOnlyClimbs) {
  const LearningRate rate{1, 5, 5};
  for (int iteration = 0; iteration < 5; ++iteration) EXPECT_DOUBLE_EQ(rate.at(iteration), 0.2 * (iteration + 1));
}

}  // namespace
}  // namespace dssync
