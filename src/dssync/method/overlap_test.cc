#include "dssync/method/overlap.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"

namespace dssync {
namespace {

using ::testing::ElementsAre;

TEST(OverlapTest, NamesLeadBackAndOldOnesAreKnown) {
  for (const Overlap overlap : {Overlap::kAuto, Overlap::kInLine, Overlap::kLayered, Overlap::kCombine}) {
    EXPECT_EQ(overlap_from_name(name_of(overlap)), overlap);
  }
  EXPECT_EQ(overlap_from_name("on"), Overlap::kAuto);
  EXPECT_EQ(overlap_from_name("off"), Overlap::kInLine);
  EXPECT_THROW(overlap_from_name("yes"), InputError);
}

TEST(OverlapTest, OnlyAutoIsResolved) {
  EXPECT_EQ(resolve(Overlap::kAuto, true), Overlap::kLayered);
  EXPECT_EQ(resolve(Overlap::kAuto, false), Overlap::kInLine);
  EXPECT_EQ(resolve(Overlap::kLayered, false), Overlap::kLayered);
  EXPECT_EQ(resolve(Overlap::kCombine, true), Overlap::kCombine);
}

TEST(OverlapTest, BucketsAreWorthTheirMessages) {
  EXPECT_EQ(buckets_of(1000, Seconds(0)), 1U);
  EXPECT_EQ(buckets_of(3.5 * (1 << 20), Seconds(0)), 3U);
  EXPECT_EQ(buckets_of(1000, Seconds(0.028)), 8U) << "a slow network";
  EXPECT_EQ(buckets_of(1e9, Seconds(1)), kMostBuckets);
}

TEST(OverlapTest, AveragesFollowTheBackwardPassWhileTheNetworkKeepsUp) {
  EXPECT_THAT(order_of_averages(4, Seconds(6), Seconds(3)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(order_of_averages(4, Seconds(0), Seconds(0)), ElementsAre(0, 1, 2, 3));
}

// Backward passes of 60 end a bucket every 15; averages of 22.5 end at 37.5, 60, 82.5, 105.
TEST(OverlapTest, WhatTheForwardPassNeedsFirstGoesFirst) {
  EXPECT_THAT(order_of_averages(4, Seconds(90), Seconds(90)), ElementsAre(0, 1, 3, 2));
  EXPECT_THAT(order_of_averages(4, Seconds(90), Seconds(1000)), ElementsAre(0, 3, 2, 1));
}

// One network, one computing thread, bucket by bucket: 60 backward, 30 forward.
double simulated(double communication, const std::vector<std::size_t>& order) {
  const double count = static_cast<double>(order.size());
  double free = 0;
  std::vector<double> done(order.size());
  for (const std::size_t bucket : order) {
    free = std::max(free, 60 * static_cast<double>(bucket + 1) / count) + communication / count;
    done[bucket] = free;
  }
  double now = 60;
  for (std::size_t bucket = order.size(); bucket-- > 0;) now = std::max(now, done[bucket]) + 30 / count;
  return now;
}

TEST(OverlapTest, AnIterationTakesAboutWhatASimulationTakes) {
  for (const std::size_t buckets : {1U, 2U, 4U, 8U, 16U}) {
    for (const double communication : {0.0, 1.0, 20.0, 60.0, 70.0, 80.0, 90.0, 100.0, 150.0, 1000.0}) {
      const double expected = simulated(communication, order_of_averages(buckets, Seconds(90), Seconds(communication)));
      const double found = layered_seconds(buckets, Seconds(90), Seconds(communication)).count();
      const bool is_close = communication > 60 && communication < 150;
      EXPECT_LE(found, expected * 1.0001) << buckets << " " << communication;
      EXPECT_GE(found, expected * (is_close ? 0.9 : 0.999)) << buckets << " " << communication;
    }
  }
}

// Of all orders of so many buckets.
double least_of_all(std::size_t buckets, double communication) {
  std::vector<std::size_t> order(buckets);
  std::iota(order.begin(), order.end(), 0);
  double least = simulated(communication, order);
  while (std::next_permutation(order.begin(), order.end())) least = std::min(least, simulated(communication, order));
  return least;
}

TEST(OverlapTest, NoOtherOrderTakesLess) {
  for (const double communication : {10.0, 40.0, 60.0, 70.0, 80.0, 90.0, 100.0, 120.0, 300.0}) {
    const double chosen = simulated(communication, order_of_averages(5, Seconds(90), Seconds(communication)));
    EXPECT_LE(chosen, least_of_all(5, communication) * 1.001) << communication;
  }
}

TEST(OverlapTest, OfManyBucketsNoOrderTakesMuchLess) {
  for (const double communication : {60.0, 70.0, 80.0, 90.0, 120.0}) {
    const double chosen = simulated(communication, order_of_averages(8, Seconds(90), Seconds(communication)));
    EXPECT_LE(chosen, least_of_all(8, communication) * 1.015) << communication;
  }
}

}  // namespace
}  // namespace dssync
