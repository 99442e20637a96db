// What a run tells of itself, with figures worked out by hand.
#include "train/train_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dssync::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

IterationReport iteration(std::int64_t number, double seconds, double images_per_second) {
  IterationReport report;
  report.epoch = 2;
  report.iteration = number;
  report.total_iterations = 1872;
  report.loss = static_cast<double>(number);
  report.iteration_seconds = seconds;
  report.compute_seconds = 0.75 * seconds;
  report.sync_seconds = 0.25 * seconds;
  report.images_per_second = images_per_second;
  report.bytes_sent = 1'000'000;
  report.relative_disagreement = 0.0123;
  return report;
}

TrainSummary example() {
  TrainSummary summary;
  summary.start.method = "ds-sync";
  summary.start.model = "cnn";
  summary.start.data = "fashion-mnist";
  summary.start.workers = 4;
  summary.start.parameters = 421'642;
  summary.start.model_bytes = 1'686'568;
  summary.start.train_examples = 60'000;
  summary.start.plan = {{"rounds", std::vector<std::string>{"all", "nobody"}},
                        {"shards", std::int64_t{2}},
                        {"seconds_per_iteration", 0.314},
                        {"steady_disagreement", 0.5}};
  summary.result.iterations = 3;
  summary.result.total_iterations = 1872;
  summary.result.test_accuracy = 0.9;
  summary.result.seconds = 5;
  summary.figures.add(iteration(1, 1, 100));
  summary.figures.add(iteration(2, 3, 20));
  summary.log = "run.jsonl";
  return summary;
}

TEST(TrainFiguresTest, RatesAreWeighedByTime) {
  TrainFigures figures;
  EXPECT_EQ(figures.images_per_second(), 0);
  figures.add(iteration(1, 1, 100));
  figures.add(iteration(2, 3, 20));
  EXPECT_DOUBLE_EQ(figures.images_per_second(), (100 + 60) / 4.0);
  EXPECT_DOUBLE_EQ(figures.sync_share(), 0.25);
  EXPECT_DOUBLE_EQ(figures.per_iteration(figures.seconds), 2);
  EXPECT_DOUBLE_EQ(figures.per_iteration(figures.loss), 1.5);
}

TEST(TrainFiguresTest, ProgressInOneLine) {
  TrainFigures figures;
  figures.add(iteration(512, 0.1, 5310));
  EXPECT_EQ(progress_text(figures, 4),
            "epoch 2/4  iteration 512/1872  loss 512  5,310 images/s  sync 25 %  disagreement 0.012");
}

TEST(TrainFiguresTest, LargeNumbersAreGrouped) {
  EXPECT_EQ(grouped(0.3123), "0.312");
  EXPECT_EQ(grouped(999.4), "999");
  EXPECT_EQ(grouped(999.9), "1,000");
  EXPECT_EQ(grouped(421'642), "421,642");
  EXPECT_EQ(grouped(-1'234'567), "-1,234,567");
}

TEST(TrainSummaryTest, TheStartNamesWhatIsTrainedAndHow) {
  EXPECT_EQ(start_as_text(example().start),
            "4 workers: cnn with 421,642 parameters (1.69 MB), fashion-mnist: 60,000 images\n"
            "ds-sync: cycle of 2 rounds, 2 shards; predicted 314 ms per iteration for averaging, S = 0.5");
  StartReport other = example().start;
  other.method = "bsp-ring";
  other.plan.clear();
  other.first_iteration = 100;
  other.total_iterations = 1872;
  EXPECT_THAT(start_as_text(other), HasSubstr("images\nbsp-ring\ngoing on after iteration 100 of 1872"));
}

TEST(TrainSummaryTest, TheTableHasTheFiguresAndOnlyFilesThatExist) {
  const std::string text = summary_as_text(example(), Style{});
  EXPECT_THAT(text, HasSubstr("cnn on fashion-mnist, ds-sync, 4 workers\n"));
  EXPECT_THAT(text, HasSubstr("accuracy       90.00 %\n"));
  EXPECT_THAT(text, HasSubstr("3 iterations of 1872"));
  EXPECT_THAT(text, HasSubstr("2 s: 1.5 s computing, 500 ms synchronizing\n"));
  EXPECT_THAT(text, HasSubstr("1 MB per worker and iteration\n"));
  EXPECT_THAT(text, HasSubstr("run.jsonl\n"));
  EXPECT_THAT(text, Not(HasSubstr("trace")));
}

TEST(TrainSummaryTest, JsonHasTheSame) {
  const nlohmann::json json = nlohmann::json::parse(summary_as_json(example()));
  EXPECT_EQ(json["method"], "ds-sync");
  EXPECT_EQ(json["plan"]["rounds"], (std::vector<std::string>{"all", "nobody"}));
  EXPECT_EQ(json["plan"]["shards"], 2);
  EXPECT_DOUBLE_EQ(json["seconds_per_iteration"], 2);
  EXPECT_DOUBLE_EQ(json["images_per_second"], 40);
  EXPECT_EQ(json["log"], "run.jsonl");
  EXPECT_TRUE(json["trace"].is_null());
  TrainSummary other = example();
  other.start.plan.clear();
  EXPECT_TRUE(nlohmann::json::parse(summary_as_json(other))["plan"].is_null());
}

}  // namespace
}  // namespace dssync::cli
