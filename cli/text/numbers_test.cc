#include "text/numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace dssync::cli {
namespace {

TEST(NumbersTest, RoundsUpAtTheFourthDigit) {
  EXPECT_EQ(rounded_up(0.5), "0.5");
  EXPECT_EQ(rounded_up(0.50001), "0.5001");
  EXPECT_EQ(rounded_up(1.0 / 3), "0.3334");
  EXPECT_EQ(rounded_up(0), "0");
  EXPECT_EQ(rounded_up(12345.6), "12346");
}

TEST(NumbersTest, NeverRoundsBelow) {
  for (int i = 1; i < 5000; ++i) {
    const double value = std::exp(i * 0.01 - 25) * (1 + 1e-16 * i);
    const double rounded = std::stod(rounded_up(value));
    EXPECT_GE(rounded, value);
    EXPECT_LE(rounded, std::max(value * 1.0011, value + 1));
  }
}

TEST(NumbersTest, DisagreementHasThreeDigits) {
  EXPECT_EQ(format_disagreement(0.4956), "0.496");
  EXPECT_EQ(format_disagreement(1e-17), "0");
  EXPECT_EQ(format_disagreement(std::numeric_limits<double>::infinity()), "unbounded");
}

TEST(NumbersTest, ComparesSpeed) {
  EXPECT_EQ(compare_speed(0.5, 1), "2x as fast as");
  EXPECT_EQ(compare_speed(1, 1.001), "as fast as");
  EXPECT_EQ(compare_speed(1.5, 1), "1.5x slower than");
  EXPECT_EQ(compare_speed(1, 2091), "2091x as fast as");
}

}  // namespace
}  // namespace dssync::cli
