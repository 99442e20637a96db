#include "dssync/testbed/shaping.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/testbed/error.h"

namespace dssync {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Bandwidth megabits(double number) { return {number * 1e6 / 8}; }

TEST(ShapingTest, TheRateIsThatOfTheLink) {
  EXPECT_EQ(bucket_for(megabits(50)).bits_per_second, 50'000'000U);
  EXPECT_THAT(shaping_lines("h7", megabits(50), Seconds(0)),
              HasSubstr("class add dev h7 parent 1: classid 1:1 htb rate 50000000bit burst "));
  EXPECT_THAT(reshaping_lines("h7", megabits(20)),
              HasSubstr("class change dev h7 parent 1: classid 1:1 htb rate 20000000bit "));
}

TEST(ShapingTest, ABurstIsShort) {
  for (const double rate : {0.1, 10.0, 50.0, 200.0, 1000.0, 100'000.0}) {
    const Bucket bucket = bucket_for(megabits(rate));
    EXPECT_GT(bucket.burst, 0U) << rate;
    EXPECT_LE(static_cast<double>(bucket.burst), std::max<double>(kMtu, megabits(rate).bytes_per_second * 1e-3))
        << rate;
    EXPECT_GT(bucket.limit, 10 * bucket.burst) << rate;
  }
}

TEST(ShapingTest, WhatSixteenFlowsSendFitsIntoAQueue) {
  for (const double rate : {10.0, 50.0, 200.0, 1000.0, 10'000.0}) {
    EXPECT_LE(16U * static_cast<unsigned>(send_buffer(megabits(rate))), bucket_for(megabits(rate)).limit) << rate;
  }
}

TEST(ShapingTest, LatencyIsAddedWhereThereIsSome) {
  EXPECT_THAT(shaping_lines("h7", megabits(50), Seconds(0)), Not(HasSubstr("netem")));
  EXPECT_THAT(shaping_lines("h7", megabits(50), Seconds(1.5e-3)),
              HasSubstr("parent 1:2 handle 2: netem delay 1500.000us limit "));
}

TEST(ShapingTest, RatesAreReadFromTheWholeLinks) {
  const std::vector<Bandwidth> rates = shown_rates(
      "class htb 1:1 root rate 50Mbit ceil 50Mbit burst 12139b cburst 12139b \n"
      "class htb 1:2 parent 1:1 leaf 2: prio 1 rate 500Kbit ceil 50Mbit burst 9014b cburst 12139b \n"
      "class htb 1:1 root rate 33333Kbit ceil 33333Kbit burst 1b cburst 1b \n");
  EXPECT_THAT(rates, ElementsAre(megabits(50), megabits(33.333)));
  EXPECT_THROW(shown_rates("class htb 1:1 root rate fast"), TestbedError);
}

TEST(ShapingTest, AFlowMaySendAFewFramesAtLeast) { EXPECT_GE(send_buffer(megabits(0.1)), 3 * kMtu); }

TEST(ShapingTest, TheTimerIsLongerThanTheQueueOfSixteenFlows) {
  EXPECT_EQ(route_settings(megabits(200), megabits(50)), "rto_min 1280ms");  // 2 * 16 * 250 kB at 6.25 MB/s
  EXPECT_EQ(route_settings(megabits(40), megabits(10)), "rto_min 1638ms");   // 2 * 16 * 64 kB at 1.25 MB/s
  EXPECT_EQ(route_settings(megabits(40), megabits(400)), "rto_min 200ms");
}

}  // namespace
}  // namespace dssync
