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
                        {"steady_disagreement", 0.25},
                        {"total_disagreement", 0.5}};
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
  StartReport start;
  start.iterations_per_epoch = 468;
  start.total_iterations = 1872;
  EXPECT_EQ(progress_text(figures, start),
            "epoch 2/4  iteration 512/1872  loss 512  5,310 images/s  sync 25 %  disagreement 0.012");
  start.total_iterations = 1000;  // an epoch that does not end counts
  start.examples_word = "windows";
  EXPECT_THAT(progress_text(figures, start), HasSubstr("epoch 2/3  iteration"));
  EXPECT_THAT(progress_text(figures, start), HasSubstr("5,310 windows/s"));
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

TEST(TrainSummaryTest, AnAreaAndAMeanAreShownWhereThereAreAny) {
  TrainSummary summary = example();
  EXPECT_THAT(summary_as_text(summary, Style{}), Not(HasSubstr("AUC")));
  EXPECT_TRUE(nlohmann::json::parse(summary_as_json(summary))["test_auc"].is_null());
  EXPECT_TRUE(nlohmann::json::parse(summary_as_json(summary))["swa"].is_null());
  summary.result.test_auc = 0.81234;
  summary.result.swa = {.iterations = 200, .test_accuracy = 0.91, .test_loss = 0.25, .test_auc = 0.82};
  EXPECT_THAT(summary_as_text(summary, Style{}), HasSubstr("AUC            0.8123\n"));
  EXPECT_THAT(summary_as_text(summary, Style{}),
              HasSubstr("mean           accuracy 91.00 %, loss 0.25, AUC 0.8200, of parameters over 200 iterations\n"));
  const nlohmann::json json = nlohmann::json::parse(summary_as_json(summary));
  EXPECT_EQ(json["test_auc"], 0.81234);
  EXPECT_EQ(json["swa"]["iterations"], 200);
  EXPECT_EQ(json["swa"]["test_auc"], 0.82);
  EvaluationReport report;
  report.epoch = 2;
  report.iteration = 400;
  report.test_accuracy = 0.9;
  report.test_loss = 0.3;
  report.test_auc = 0.8;
  report.swa = summary.result.swa;
  report.seconds = 4;
  EXPECT_EQ(evaluation_as_text(report),
            "epoch 2, iteration 400: accuracy 90.00 %, loss 0.3, AUC 0.8000, after 4 s\n"
            "  mean: accuracy 91.00 %, loss 0.25, AUC 0.8200, of parameters over 200 iterations");
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
