#include "dssync/testbed/shaping.h"

#include <gtest/gtest.h>

namespace dssync {
namespace {

constexpr Bandwidth megabits(double number) { return {number * 1e6 / 8}; }

TEST(ShapingTest, TheRateIsThatOfTheLink) {
  EXPECT_EQ(bucket_for(megabits(50)).bits_per_second, 50'000'000U);
  EXPECT_TRUE(tbf_text(megabits(50)).starts_with("tbf rate 50000000bit burst "));
}

TEST(ShapingTest, ABurstHoldsAFrameAndLittleMore) {
  for (const double rate : {0.1, 10.0, 50.0, 200.0, 1000.0, 100'000.0}) {
    const Bucket bucket = bucket_for(megabits(rate));
    EXPECT_GE(bucket.burst, kMtu + 14U) << rate;
    EXPECT_LE(static_cast<double>(bucket.burst) - (kMtu + 14), megabits(rate).bytes_per_second * 1e-3) << rate;
    EXPECT_GT(bucket.limit, 10 * bucket.burst) << rate;
  }
}

TEST(ShapingTest, SixteenWindowsFitIntoAQueue) {
  for (const double rate : {10.0, 50.0, 200.0}) {
    EXPECT_LE(16U * static_cast<unsigned>(tcp_window(megabits(rate))), bucket_for(megabits(rate)).limit) << rate;
  }
}

TEST(ShapingTest, AWindowHoldsAFewFramesAtLeast) { EXPECT_GE(tcp_window(megabits(0.1)), 3 * kMtu); }

}  // namespace
}  // namespace dssync
