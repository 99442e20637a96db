#include "dssync/report/comparison.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/report/testing.h"

namespace dssync {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> names(const Comparison& comparison) {
  std::vector<std::string> result;
  for (const RunGroup& group : comparison.groups) result.push_back(group.name);
  return result;
}

// Spaces that do not break are spaces.
std::string said(const std::vector<TrainingRun>& runs, std::optional<double> accuracy = {}) {
  std::string text = conclusion(compare(runs, accuracy));
  for (std::size_t at = 0; (at = text.find("\u00a0", at)) != std::string::npos;) text.replace(at, 2, " ");
  return text;
}

TEST(ComparisonTest, SeedsAreGrouped) {
  const std::vector<TrainingRun> runs{run_of("ds-sync", 1, {0.8, 0.9}), run_of("bsp-ring", 1, {0.7, 0.9}),
                                      run_of("ds-sync", 2, {0.7, 0.88})};
  const Comparison comparison = compare(runs, 0.85);
  EXPECT_THAT(names(comparison), ElementsAre("ds-sync", "bsp-ring"));
  ASSERT_EQ(comparison.groups[0].runs.size(), 2U);
  EXPECT_DOUBLE_EQ(comparison.groups[0].final_accuracy.mean, 0.89);
  EXPECT_DOUBLE_EQ(comparison.groups[0].final_accuracy.low, 0.88);
  EXPECT_EQ(member_name(comparison.groups[0], runs[2]), "seed 2");
}

TEST(ComparisonTest, WaitingIsTakenOutOfSynchronizing) {
  std::vector<TrainingRun> runs{run_of("ds-sync", 1, {0.8})};
  const Comparison told = compare(runs, {});
  EXPECT_NEAR(told.groups[0].mean_compute, 0.06, 1e-6);
  EXPECT_NEAR(told.groups[0].mean_sync, 0.01, 1e-6);
  EXPECT_NEAR(told.groups[0].mean_wait, 0.03, 1e-6);
  for (IterationSample& sample : runs[0].samples) sample.wait_seconds = std::nanf("");  // an older log
  const Comparison untold = compare(runs, {});
  EXPECT_NEAR(untold.groups[0].mean_sync, 0.04, 1e-6);
  EXPECT_EQ(untold.groups[0].mean_wait, 0);
}

TEST(ComparisonTest, FilesTellRunsOfOneSeedApart) {
  std::vector<TrainingRun> runs{run_of("ds-sync", 1, {0.8}), run_of("ds-sync", 1, {0.8})};
  runs[1].file = "again.jsonl";
  const Comparison comparison = compare(runs, {});
  ASSERT_EQ(comparison.groups.size(), 1U);
  EXPECT_EQ(member_name(comparison.groups[0], runs[1]), "seed 1 (again.jsonl)");
}

TEST(ComparisonTest, NamesSayWhatDiffers) {
  std::vector<TrainingRun> runs{run_of("ds-sync", 1, {0.8}), run_of("ds-sync", 1, {0.8}), run_of("asp", 1, {0.8})};
  runs[0].options.emplace_back("disagreement_limit", "0.2");
  runs[1].options.emplace_back("disagreement_limit", "0.5");
  runs[1].options.emplace_back("log", "elsewhere.jsonl");  // says nothing about the run
  EXPECT_THAT(names(compare(runs, {})),
              ElementsAre("ds-sync, disagreement limit 0.2", "ds-sync, disagreement limit 0.5", "asp"));
}

TEST(ComparisonTest, NamesSayWhatIsOverlapped) {
  std::vector<TrainingRun> runs{run_of("ds-sync", 1, {0.8}), run_of("bsp-ring", 1, {0.8})};
  runs[0].options.emplace_back("overlap", "true");
  EXPECT_THAT(names(compare(runs, {})), ElementsAre("ds-sync, overlapped", "bsp-ring"));
  runs.push_back(run_of("ds-sync", 1, {0.8}));
  runs[2].options.emplace_back("overlap", "false");
  EXPECT_THAT(names(compare(runs, {})), ElementsAre("ds-sync, overlapped", "bsp-ring", "ds-sync"));
  runs[0].options.back().second = "combine";
  runs[2].options.back().second = "layered";
  EXPECT_THAT(names(compare(runs, {})), ElementsAre("ds-sync, overlapped", "bsp-ring", "ds-sync, layered"));
  runs[2].options.back().second = "none";
  EXPECT_THAT(names(compare(runs, {})), ElementsAre("ds-sync, overlapped", "bsp-ring", "ds-sync"));
}

TEST(ComparisonTest, DefaultAccuracyIsWhatAllThatFinishedReached) {
  std::vector<TrainingRun> runs{run_of("ds-sync", 1, {0.8, 0.8799}), run_of("bsp-ring", 1, {0.5, 0.9})};
  EXPECT_DOUBLE_EQ(*compare(runs, {}).accuracy, 0.875);
  runs.push_back(run_of("asp", 1, {0.3}));
  EXPECT_DOUBLE_EQ(*compare(runs, {}).accuracy, 0.3);
  runs.back().ending = Ending::kFailed;
  EXPECT_DOUBLE_EQ(*compare(runs, {}).accuracy, 0.875);
  EXPECT_DOUBLE_EQ(*compare({run_of("ps", 1, {0.88})}, {}).accuracy, 0.88);
  EXPECT_FALSE(compare({run_of("ps", 1, {})}, {}).accuracy.has_value());
}

TEST(ComparisonTest, TimeIsThatOfTheFirstEvaluationThatReachesIt) {
  const TrainingRun run = run_of("ds-sync", 1, {0.5, 0.8, 0.7, 0.9});
  EXPECT_EQ(seconds_to(run, 0.8), 20);
  EXPECT_EQ(seconds_to(run, 0.81), 40);
  EXPECT_FALSE(seconds_to(run, 0.95));
}

TEST(ComparisonTest, SpeedupIsAgainstTheBestBspRun) {
  const std::vector<TrainingRun> runs{run_of("ds-sync", 1, {0.9}), run_of("bsp-ring", 1, {0.1, 0.2, 0.3, 0.9}),
                                      run_of("bsp-hierarchical", 1, {0.1, 0.9})};
  const Comparison comparison = compare(runs, {});
  EXPECT_EQ(comparison.best_exact, 2U);
  EXPECT_DOUBLE_EQ(*comparison.groups[0].speedup, 2);
  EXPECT_DOUBLE_EQ(*comparison.groups[1].speedup, 0.5);
  EXPECT_DOUBLE_EQ(*comparison.groups[0].iteration_speedup, 1);
}

TEST(ComparisonTest, LoadsOfLinksAreSharesOfWhatIsPossible) {
  TrainingRun run = run_of("ds-sync", 1, {0.9});
  run.network = two_racks();
  run.traffic = Traffic{.iterations = 4, .seconds = 4, .bytes = {{"rack-a up", 2e6}, {"a0 out", 4e6}}};
  const Comparison comparison = compare({run}, {});
  const LinkLoad* busiest = comparison.groups[0].busiest();
  ASSERT_NE(busiest, nullptr);
  const auto up = std::find_if(comparison.groups[0].links.begin(), comparison.groups[0].links.end(),
                               [](const LinkLoad& link) { return link.name == "rack-a up"; });
  EXPECT_DOUBLE_EQ(*up->measured_bytes, 5e5);
  EXPECT_DOUBLE_EQ(*up->measured_share, 0.5);  // 2 MB in 4 s at 1 MB/s
  EXPECT_DOUBLE_EQ(*up->predicted_share, 1);
}

TEST(ConclusionTest, NamesTheFastestAndItsRival) {
  const std::string text = said({run_of("bsp-ring", 1, {0.1, 0.2, 0.3, 0.88}), run_of("ds-sync", 1, {0.88})});
  EXPECT_THAT(
      text, HasSubstr("ds-sync reached 88 % accuracy after 10 s of training, 4.0 times sooner than bsp-ring (40 s)."));
  EXPECT_THAT(text, HasSubstr("ds-sync stood at 88.00 % and bsp-ring at 88.00 %."));
}

TEST(ConclusionTest, TiesAreNoWin) {
  EXPECT_THAT(said({run_of("ds-sync", 1, {0.88}), run_of("bsp-ring", 1, {0.88})}),
              HasSubstr("ds-sync and bsp-ring reached 88 % accuracy at about the same time"));
}

TEST(ConclusionTest, SeedsBringRanges) {
  const std::string text = said(
      {run_of("ds-sync", 1, {0.88}), run_of("ds-sync", 2, {0.1, 0.2, 0.88}), run_of("bsp-ring", 1, {0.1, 0.2, 0.88})});
  EXPECT_THAT(text,
              HasSubstr("after 20 s (mean of 2 runs, 10 s to 30 s) of training, 1.50 times sooner than bsp-ring"));
  EXPECT_THAT(text, HasSubstr("The ranges of ds-sync and bsp-ring overlap."));
}

TEST(ConclusionTest, WhatWasNotReachedIsNotClaimed) {
  std::vector<TrainingRun> runs{run_of("ds-sync", 1, {0.88}), run_of("asp", 1, {0.5, 0.6}), run_of("ps", 1, {0.3})};
  runs[2].ending = Ending::kFailed;
  const std::string text = said(runs, 0.88);
  EXPECT_THAT(text, HasSubstr("ds-sync reached 88 % accuracy after 10 s of training."));
  EXPECT_THAT(text, HasSubstr("asp never reached 88 % (its best was 60.00 %)."));
  EXPECT_THAT(text, HasSubstr("ps did not reach 88 % (its best was 30.00 %). ps failed after iteration 4 of 4."));
  EXPECT_THAT(text, Not(HasSubstr("sooner")));
}

TEST(ConclusionTest, NobodyReachedIt) {
  EXPECT_THAT(said({run_of("ds-sync", 1, {0.5})}, 0.9),
              HasSubstr("No run reached 90 % accuracy. An iteration of ds-sync took 100 ms"));
}

// One that the network holds up for one iteration in four is not the faster one, whatever its median says.
TEST(ConclusionTest, SlowIterationsCount) {
  TrainingRun held_up = run_of("ds-sync", 1, {});
  held_up.samples[2].seconds = 2;
  TrainingRun steady = run_of("bsp-ring", 1, {});
  for (IterationSample& sample : steady.samples) sample.seconds = 0.2F;
  EXPECT_THAT(said({held_up, steady}),
              HasSubstr("bsp-ring had the shortest iterations: 200 ms on average, 200 ms in the median."));
}

TEST(ConclusionTest, NothingWasEvaluated) {
  TrainingRun cut = run_of("ds-sync", 1, {});
  cut.ending = Ending::kCutOff;
  cut.samples.clear();
  EXPECT_THAT(said({cut}), HasSubstr("No run was evaluated"));
  EXPECT_THAT(said({cut}), HasSubstr("ds-sync has no end in its log after iteration 0 of 4."));
}

}  // namespace
}  // namespace dssync
