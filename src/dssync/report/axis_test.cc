#include "dssync/report/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dssync {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> result;
  for (const Tick& tick : axis.ticks) result.push_back(tick.label);
  return result;
}

TEST(AxisTest, TicksAreRound) {
  EXPECT_THAT(labels(linear_axis(0, 186, Unit::kPlain, 6)), ElementsAre("0", "50", "100", "150", "200"));
  EXPECT_THAT(labels(linear_axis(0, 1, Unit::kPlain, 5)), ElementsAre("0.00", "0.25", "0.50", "0.75", "1.00"));
  EXPECT_THAT(labels(linear_axis(0, 9000, Unit::kPlain, 4)), ElementsAre("0", "5,000", "10,000"));
}

TEST(AxisTest, HoldsWhatItShows) {
  const Axis axis = linear_axis(3.2, 17.9, Unit::kPlain, 6);
  EXPECT_LE(axis.low, 3.2);
  EXPECT_GE(axis.high, 17.9);
  EXPECT_DOUBLE_EQ(axis.place(axis.low), 0);
  EXPECT_DOUBLE_EQ(axis.place(axis.high), 1);
  EXPECT_DOUBLE_EQ(axis.place(1e9), 1);
}

TEST(AxisTest, SharesAreShownAsPercent) {
  const Axis axis = linear_axis(0.72, 0.88, Unit::kPercent, 5);
  EXPECT_EQ(axis.unit_name, "%");
  EXPECT_THAT(labels(axis), ElementsAre("70", "75", "80", "85", "90"));
}

TEST(AxisTest, SecondsShareAUnit) {
  EXPECT_EQ(linear_axis(0, 0.18, Unit::kSeconds, 5).unit_name, "ms");
  EXPECT_EQ(linear_axis(0, 41, Unit::kSeconds, 5).unit_name, "s");
  EXPECT_EQ(linear_axis(0, 3600, Unit::kSeconds, 5).unit_name, "min");
  EXPECT_THAT(labels(linear_axis(0, 0.18, Unit::kSeconds, 5)), ElementsAre("0", "50", "100", "150", "200"));
}

TEST(AxisTest, OneValueHasAnAxis) {
  for (const double value : {0.0, 5.0, -3.0, 1e-9}) {
    const Axis axis = linear_axis(value, value, Unit::kPlain, 5);
    EXPECT_LT(axis.low, axis.high);
    EXPECT_GE(axis.ticks.size(), 2U);
  }
}

TEST(AxisTest, DecadesAreLogarithmic) {
  const Axis axis = fitting_axis(2e-5, 0.05, Unit::kPlain, 6);
  EXPECT_TRUE(axis.is_logarithmic);
  EXPECT_THAT(labels(axis), ElementsAre("1e-05", "1e-04", "0.001", "0.01", "0.1"));
  EXPECT_NEAR(axis.place(1e-3), 0.5, 1e-9);
  EXPECT_FALSE(fitting_axis(0, 1, Unit::kPlain, 6).is_logarithmic);
  EXPECT_FALSE(fitting_axis(1, 20, Unit::kPlain, 6).is_logarithmic);
}

TEST(AxisTest, FewDecadesHaveTicksBetweenPowers) {
  EXPECT_THAT(labels(logarithmic_axis(0.03, 1.5, Unit::kSeconds)),
              ElementsAre("20 ms", "50 ms", "100 ms", "200 ms", "500 ms", "1 s", "2 s"));
}

TEST(AxisTest, ManyDecadesHaveFewTicks) { EXPECT_LE(logarithmic_axis(1e-40, 1e10, Unit::kPlain).ticks.size(), 10U); }

}  // namespace
}  // namespace dssync
