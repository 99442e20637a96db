#include "dssync/method/choose_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using ::testing::HasSubstr;

constexpr double kBytes = 8e6;

SyncOptions options_with(Overlap overlap, double limit, double compute = 0) {
  SyncOptions options;
  options.overlap = overlap;
  options.disagreement = limit;
  options.compute = Seconds(compute);
  return options;
}

TEST(ChoosePlanTest, TheLimitCountsWhatCombiningMisses) {
  const Topology topology = testing::racks(2, 4, 4, 1);
  const PlanChoice combined = choose_plan(topology, kBytes, options_with(Overlap::kCombine, 1.375), true);
  EXPECT_EQ(combined.overlap, Overlap::kCombine);
  EXPECT_DOUBLE_EQ(missed_disagreement(Overlap::kCombine, combined.plan, 8), 0.875);
  EXPECT_LE(total_disagreement(Overlap::kCombine, combined.plan, 8), 1.375 + 1e-9);
  const PlanChoice in_line = choose_plan(topology, kBytes, options_with(Overlap::kInLine, 0.5), true);
  EXPECT_EQ(in_line.plan.rounds, combined.plan.rounds);  // what is left for the plan is the same
}

TEST(ChoosePlanTest, ALimitThatCombiningAloneBreaksIsRefused) {
  const Topology topology = testing::racks(2, 4, 4, 1);
  try {
    choose_plan(topology, kBytes, options_with(Overlap::kCombine, 0.5), true);
    FAIL() << "expected an InputError";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("0.875"));
    EXPECT_THAT(error.what(), HasSubstr("layered"));
  }
}

TEST(ChoosePlanTest, WithoutAComputingTimeTheModeAddsNothing) {
  const Topology topology = testing::racks(2, 4, 4, 1);
  EXPECT_EQ(choose_plan(topology, kBytes, options_with(Overlap::kAuto, 4), true).overlap, Overlap::kLayered);
  EXPECT_EQ(choose_plan(topology, kBytes, options_with(Overlap::kAuto, 4), false).overlap, Overlap::kInLine);
}

TEST(ChoosePlanTest, TakesTheFastestModeWithinTheLimit) {
  const Topology topology = testing::racks(2, 4, 4, 1);
  const double averages =
      choose_plan(topology, kBytes, options_with(Overlap::kAuto, 4), false).plan.cost.seconds_per_iteration;
  // In line, averages as long as computing double an iteration; combined, computing hides them.
  EXPECT_EQ(choose_plan(topology, kBytes, options_with(Overlap::kAuto, 4, 4 * averages), false).overlap,
            Overlap::kCombine);
  // Within a tight limit there is no choice.
  EXPECT_EQ(choose_plan(topology, kBytes, options_with(Overlap::kAuto, 0.5, 4 * averages), false).overlap,
            Overlap::kInLine);
  // Layered hides nearly all of it, too.
  EXPECT_EQ(choose_plan(topology, kBytes, options_with(Overlap::kAuto, 4, 40 * averages), true).overlap,
            Overlap::kLayered);
}

}  // namespace
}  // namespace dssync
