#include "dssync/report/statistics.h"

#include <limits>

#include <gtest/gtest.h>

namespace dssync {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

TEST(StatisticsTest, QuantilesInterpolate) {
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 1), 4);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.9), 7);
}

TEST(StatisticsTest, SpreadIsTheTenthToTheNinetiethPercentile) {
  std::vector<double> values;
  for (int i = 0; i <= 100; ++i) values.push_back(100 - i);
  const Spread spread = spread_of(values);
  EXPECT_DOUBLE_EQ(spread.low, 10);
  EXPECT_DOUBLE_EQ(spread.median, 50);
  EXPECT_DOUBLE_EQ(spread.high, 90);
}

TEST(StatisticsTest, WhatIsNoNumberIsLeftOut) {
  EXPECT_DOUBLE_EQ(mean_of({1, kNone, 3}), 2);
  EXPECT_DOUBLE_EQ(quantile({kNone, 5}, 0.5), 5);
  EXPECT_DOUBLE_EQ(spread_of({kNone}).median, 0);
  EXPECT_TRUE(in_buckets({{1, kNone}}, 5).empty());
  EXPECT_TRUE(smoothed({{1, kNone}}, 2, 5).empty());
}

TEST(StatisticsTest, BucketsHoldAllPointsOnce) {
  std::vector<Point> points;
  for (int i = 1; i <= 1000; ++i) points.push_back({double(i), double(i % 10)});
  const std::vector<Bucket> buckets = in_buckets(points, 100);
  ASSERT_EQ(buckets.size(), 100U);
  EXPECT_NEAR(buckets.front().x, 5.5, 1e-9);  // the mean of 1 to 10
  EXPECT_NEAR(buckets.back().x, 995.5, 1e-9);
  EXPECT_DOUBLE_EQ(buckets.front().y.median, 4.5);
  EXPECT_EQ(in_buckets(points, 5000).size(), 1000U);
}

TEST(StatisticsTest, SmoothingKeepsTheEnds) {
  const std::vector<Point> line = smoothed({{1, 0}, {2, 3}, {3, 6}, {4, 3}, {5, 0}}, 1, 3);
  ASSERT_EQ(line.size(), 3U);
  EXPECT_DOUBLE_EQ(line[0].x, 1);
  EXPECT_DOUBLE_EQ(line[0].y, 1.5);  // of 0 and 3
  EXPECT_DOUBLE_EQ(line[1].y, 4);    // of 3, 6 and 3
  EXPECT_DOUBLE_EQ(line[2].x, 5);
}

}  // namespace
}  // namespace dssync
