// Whole runs, with workers as threads and small synthetic data.
#include "dssync/training/trainer.h"

#include <atomic>
#include <csignal>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "dssync/base/error.h"
#include "dssync/training/testing.h"

namespace dssync {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using testing::content_of;
using ::testing::Each;
using testing::events_of;
using ::testing::HasSubstr;
using testing::kWorkers;
using testing::lines_of;
using testing::message_of;
using testing::network;
using testing::run;
using testing::run_ranks;
using testing::small_click_run;
using testing::small_run;
using testing::small_text_run;
using testing::TemporaryFolder;
using testing::with;

// Gloo writes to connections that a failed worker has closed.
[[maybe_unused]] const auto kBefore = std::signal(SIGPIPE, SIG_IGN);

class EveryMethodTest : public ::testing::TestWithParam<Method> {};

TEST_P(EveryMethodTest, LearnsAndAgrees) {
  const TemporaryFolder folder;
  TrainOptions options = small_run();
  options.log = folder / "run.jsonl";
  const auto results = run(options, with(GetParam()));
  for (const TrainResult& result : results) {
    EXPECT_EQ(result.iterations, 24);
    EXPECT_EQ(result.epochs, 3);
    EXPECT_GT(result.test_accuracy, 0.25);  // guessing: 0.1
    EXPECT_EQ(result.test_accuracy, results.front().test_accuracy);
    EXPECT_EQ(result.test_loss, results.front().test_loss);
  }
  const auto lines = lines_of(options.log);
  EXPECT_EQ(lines.front().at("event"), "started");
  EXPECT_EQ(lines.back().at("event"), "finished");
  EXPECT_EQ(lines.back().at("method"), name_of(GetParam()));
  EXPECT_EQ(lines.back().at("test_accuracy"), results.front().test_accuracy);
  EXPECT_EQ(events_of(options.log, "iteration").size(), 24u);
  EXPECT_EQ(events_of(options.log, "evaluated").size(), 3u);
  EXPECT_EQ(lines.front().contains("plan"), GetParam() == Method::kDsSync || GetParam() == Method::kLocalSgd);
}

INSTANTIATE_TEST_SUITE_P(Methods, EveryMethodTest, ::testing::ValuesIn(all_methods()), [](const auto& tested) {
  std::string name = name_of(tested.param);
  std::erase(name, '-');
  return name;
});

TEST_P(EveryMethodTest, LearnsText) {
  const auto results = run(small_text_run(), with(GetParam()));
  for (const TrainResult& result : results) {
    EXPECT_EQ(result.iterations, 24);
    EXPECT_LT(result.test_loss, 3.7);  // guessing among 128 symbols: 4.85
    EXPECT_GT(result.test_accuracy, 0.1);
    EXPECT_EQ(result.test_loss, results.front().test_loss);
  }
}

TEST_P(EveryMethodTest, LearnsClicks) {
  const TemporaryFolder folder;
  TrainOptions options = small_click_run();
  options.log = folder / "run.jsonl";
  const auto results = run(options, with(GetParam()));
  for (const TrainResult& result : results) {
    ASSERT_TRUE(result.test_auc);
    EXPECT_GT(*result.test_auc, 0.6);  // guessing: 0.5
    EXPECT_EQ(result.test_auc, results.front().test_auc);
  }
  EXPECT_EQ(lines_of(options.log).back().at("test_auc"), results.front().test_auc);
  EXPECT_EQ(events_of(options.log, "evaluated").back().at("test_auc"), results.front().test_auc);
}

// The mean of everyone's means is tested, and is the same for all.
TEST_P(EveryMethodTest, TestsTheMeanOfTheParameters) {
  const TemporaryFolder folder;
  TrainOptions options = small_run();
  options.log = folder / "run.jsonl";
  options.swa_start = 10;
  options.final_rate = 0.02;
  const auto results = run(options, with(GetParam()));
  for (const TrainResult& result : results) {
    ASSERT_TRUE(result.swa);
    EXPECT_EQ(result.swa->iterations, 15);  // 10 to 24
    EXPECT_GT(result.swa->test_accuracy, 0.25);
    EXPECT_EQ(result.swa->test_loss, results.front().swa->test_loss);
    EXPECT_NE(result.swa->test_loss, result.test_loss);
  }
  const auto evaluations = events_of(options.log, "evaluated");
  EXPECT_FALSE(evaluations[0].contains("swa"));
  EXPECT_EQ(evaluations[1].at("swa").at("iterations"), 7);
  const auto iterations = events_of(options.log, "iteration");
  EXPECT_GT(iterations[8].at("learning_rate"), 0.02);
  for (const std::size_t index : {10u, 17u, 23u}) EXPECT_DOUBLE_EQ(iterations[index].at("learning_rate"), 0.02);
}

// A mean of one iteration is that iteration's model; with BatchNorm, its statistics are computed anew.
TEST(TrainTest, AMeanOfOneIterationIsTheModelItself) {
  for (const std::string model : {"mlp", "resnet"}) {
    TrainOptions options = small_run();
    options.model.name = model;
    options.max_iterations = 9;
    options.swa_start = 9;
    const TrainResult result = run(options, with(Method::kDsSync)).front();
    ASSERT_TRUE(result.swa);
    if (model == "mlp") {
      EXPECT_NEAR(result.swa->test_loss, result.test_loss, 1e-5);
    } else {
      EXPECT_LT(result.swa->test_loss, 2.4);  // guessing: 2.3
    }
  }
}

TEST(TrainTest, TakingAMeanChangesNothing) {
  TrainOptions options = small_run();
  options.model.name = "resnet";
  options.data.train_examples = 256;
  const double without = run(options, with(Method::kDsSync)).front().test_loss;
  options.swa_start = 3;
  EXPECT_EQ(run(options, with(Method::kDsSync)).front().test_loss, without);
}

TEST(TrainTest, IterationsAloneAreTheLengthOfTheRun) {
  const TemporaryFolder folder;
  TrainOptions options = small_run();
  options.log = folder / "run.jsonl";
  options.epochs.reset();
  options.max_iterations = 20;
  run(options, with(Method::kBspRing));
  const auto iterations = events_of(options.log, "iteration");
  ASSERT_EQ(iterations.size(), 20u);
  EXPECT_DOUBLE_EQ(iterations[0].at("learning_rate"), 0.05 / 2);  // a tenth of them is warm-up
  EXPECT_DOUBLE_EQ(iterations[1].at("learning_rate"), 0.05);
  EXPECT_LT(iterations[19].at("learning_rate"), 0.05 * 0.01);
  EXPECT_EQ(lines_of(options.log).back().at("total_iterations"), 20);
}

// With gradients as short as that, nothing is learned.
TEST(TrainTest, GradientsAreClipped) {
  TrainOptions options = small_run();
  options.weight_decay = 0;
  const double free = run(options, with(Method::kBspRing)).front().test_loss;
  options.clip_norm = 1e-6;
  const double clipped = run(options, with(Method::kBspRing)).front().test_loss;
  EXPECT_NEAR(clipped, 2.30, 0.05);
  EXPECT_LT(free, 2.2);
}

TEST(TrainTest, AloneIsARunToo) {
  TrainOptions options = small_run();
  options.batch_size = 64;
  TrainResult result;
  run_ranks(1, [&](World& world) { result = train(world, testing::flat(1), options, with(Method::kDsSync)); });
  EXPECT_EQ(result.iterations, 24);
  EXPECT_GT(result.test_accuracy, 0.25);
}

TEST(TrainTest, SeveralRunsFitInOneWorld) {
  TrainOptions options = small_run();
  options.epochs = 1;
  run_ranks(2, [&](World& world) {
    const auto once = train(world, network(2), options, with(Method::kBspRing));
    const auto again = train(world, network(2), options, with(Method::kBspRing));
    EXPECT_EQ(once.test_loss, again.test_loss);
  });
}

// Four workers that average gradients compute what one worker does with batches of four times the size.
TEST(TrainTest, ExactAveragesAreOneLargeBatch) {
  TrainOptions options = small_run();
  const TrainResult together = run(options, with(Method::kBspRing)).front();
  options.batch_size *= kWorkers;
  TrainResult alone;
  run_ranks(1, [&](World& world) { alone = train(world, testing::flat(1), options, with(Method::kBspRing)); });
  EXPECT_NEAR(together.test_loss, alone.test_loss, 1e-3);
  EXPECT_NEAR(together.test_accuracy, alone.test_accuracy, 0.011);
}

TEST(TrainTest, TheLogTellsWhatHappened) {
  const TemporaryFolder folder;
  TrainOptions options = small_run();
  options.log = folder / "run.jsonl";
  options.compute = std::chrono::milliseconds(15);
  options.max_iterations = 10;
  SyncOptions sync = with(Method::kDsSync);
  sync.overlap = Overlap::kInLine;  // the others may hide all waiting
  run(options, sync);
  const json start = lines_of(options.log).front();
  EXPECT_EQ(start.at("workers"), 4);
  EXPECT_EQ(start.at("parameters"), 109'386);
  EXPECT_EQ(start.at("iterations_per_epoch"), 8);
  EXPECT_EQ(start.at("options").at("batch_size"), 16);
  EXPECT_EQ(start.at("options").at("method"), "ds-sync");
  EXPECT_FALSE(start.at("plan").at("rounds").empty());
  const auto iterations = events_of(options.log, "iteration");
  ASSERT_EQ(iterations.size(), 10u);
  double before = 0;
  for (std::size_t index = 0; index < iterations.size(); ++index) {
    const json& line = iterations[index];
    EXPECT_EQ(line.at("iteration"), index + 1);
    EXPECT_EQ(line.at("epoch"), index / 8 + 1);
    EXPECT_GT(line.at("seconds"), before);
    EXPECT_GE(line.at("compute_seconds"), 0.015);
    EXPECT_GE(line.at("iteration_seconds").get<double>(),
              line.at("compute_seconds").get<double>() + 0.99 * line.at("sync_seconds").get<double>());
    EXPECT_GT(line.at("wait_seconds"), 0);
    EXPECT_LE(line.at("wait_seconds").get<double>(), line.at("sync_seconds").get<double>());
    EXPECT_GE(line.at("relative_disagreement"), 0);
    before = line.at("seconds");
  }
  EXPECT_DOUBLE_EQ(iterations[0].at("learning_rate"), 0.05 / 4);  // half an epoch of 8 iterations of warm-up
  EXPECT_DOUBLE_EQ(iterations[3].at("learning_rate"), 0.05);
  const json last = lines_of(options.log).back();
  EXPECT_EQ(last.at("iterations"), 10);
  EXPECT_EQ(last.at("total_iterations"), 24);
  EXPECT_GE(last.at("seconds").get<double>(), last.at("training_seconds").get<double>());
}

TEST(TrainFailureTest, ALossThatIsNoNumberStopsEveryone) {
  const TemporaryFolder folder;
  TrainOptions options = small_run();
  options.learning_rate = 1e18;
  options.warmup_epochs = 0;
  options.log = folder / "run.jsonl";
  std::atomic<int> failed = 0;
  run_ranks(2, [&](World& world) {
    try {
      train(world, network(2), options, with(Method::kBspRing));
    } catch (const Error& error) {
      ++failed;
      EXPECT_THAT(error.what(), AllOf(HasSubstr("rank "), HasSubstr("the loss is "), HasSubstr("in iteration "),
                                      HasSubstr("a smaller learning rate than 1e+18 may help")));
    }
  });
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(lines_of(options.log).back().at("event"), "failed");
  EXPECT_THAT(lines_of(options.log).back().at("cause").get<std::string>(), HasSubstr("smaller learning rate"));
}

// Gives up in the middle of a run.
class Quitter : public ProgressSink {
 public:
  void iteration(const IterationReport& report) override {
    if (report.iteration == 4) throw Error("the coffee is cold");
  }
};

TEST(TrainFailureTest, TheOthersLearnWhoFailedAndWhy) {
  const TemporaryFolder folder;
  TrainOptions options = small_run();
  options.log = folder / "run.jsonl";
  std::mutex mutex;
  std::map<int, std::string> messages;
  run_ranks(
      kWorkers,
      [&](World& world) {
        Quitter quitter;
        try {
          train(world, network(kWorkers), options, with(Method::kDsSync), world.rank() == 2 ? &quitter : nullptr);
        } catch (const Error& error) {
          const std::lock_guard lock(mutex);
          messages[world.rank()] = error.what();
        }
      },
      std::chrono::seconds(10));
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[2], "the coffee is cold");
  for (const int rank : {0, 1, 3}) EXPECT_THAT(messages[rank], HasSubstr("rank 2 failed: the coffee is cold")) << rank;
  EXPECT_EQ(lines_of(options.log).back().at("event"), "failed");
  EXPECT_THAT(lines_of(options.log).back().at("cause").get<std::string>(), HasSubstr("the coffee is cold"));
}

TEST(TrainFailureTest, WorkersMustAgreeOnTheOptions) {
  run_ranks(2, [&](World& world) {
    TrainOptions options = small_run();
    if (world.rank() == 1) options.batch_size = 8;
    EXPECT_THROW(train(world, network(2), options, with(Method::kBspRing)), AgreementError);
  });
}

TEST(TrainFailureTest, OptionsAreCheckedFirst) {
  const auto refused = [](auto change) {
    TrainOptions options = small_run();
    change(options);
    return message_of<InputError>([&] { check(options); });
  };
  EXPECT_THAT(refused([](TrainOptions& options) { options.data.name = "mnist"; }), HasSubstr("data \"mnist\""));
  EXPECT_THAT(refused([](TrainOptions& options) { options.model.name = "vgg"; }), HasSubstr("mlp, cnn, resnet"));
  EXPECT_THAT(refused([](TrainOptions& options) { options.optimizer = "x"; }), HasSubstr("sgd, adam, adamw"));
  EXPECT_THAT(refused([](TrainOptions& options) { options.epochs = 0; }), HasSubstr("epochs 0: expected at least 1"));
  EXPECT_THAT(refused([](TrainOptions& options) { options.batch_size = 0; }), HasSubstr("batch size 0"));
  EXPECT_THAT(refused([](TrainOptions& options) { options.compute = Seconds(-1); }), HasSubstr("compute -1"));
  EXPECT_THAT(refused([](TrainOptions& options) { options.resume = true; }), HasSubstr("folder of the checkpoints"));
  EXPECT_EQ(refused([](TrainOptions&) {}), "no exception");
}

// Ends the log from elsewhere, as a signal would.
class Interrupter : public ProgressSink {
 public:
  void log_opened(const std::shared_ptr<RunLog>& log) override { log_ = log; }
  void iteration(const IterationReport& report) override {
    if (report.iteration == 3) std::thread([log = log_] { log->interrupted("SIGINT"); }).join();
  }

 private:
  std::shared_ptr<RunLog> log_;
};

TEST(TrainTest, AnInterruptedLogStaysAsItIs) {
  const TemporaryFolder folder;
  TrainOptions options = small_run();
  options.log = folder / "run.jsonl";
  Interrupter interrupter;
  run_ranks(1, [&](World& world) { train(world, testing::flat(1), options, with(Method::kDsSync), &interrupter); });
  const auto lines = lines_of(options.log);
  ASSERT_EQ(lines.size(), 6u);  // started, network, three iterations, interrupted
  EXPECT_EQ(lines.back().at("event"), "interrupted");
  EXPECT_EQ(lines.back().at("iterations"), 3);
}

TEST(TrainTest, OneTraceShowsAllWorkers) {
  const TemporaryFolder folder;
  TrainOptions options = small_run();
  options.epochs = 1;
  options.trace = folder / "trace.json";
  run(options, with(Method::kDsSync));
  const json trace = json::parse(content_of(options.trace));
  EXPECT_EQ(trace.at("droppedSpans"), json({0, 0, 0, 0}));
  std::map<int, int> gradients;
  std::set<int> averaging;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    EXPECT_GE(event.at("dur"), 0);
    EXPECT_GE(event.at("ts"), 0);
    if (event.at("name") == "forward and backward") ++gradients[event.at("pid")];
    if (event.at("cat") == "stage") averaging.insert(event.at("pid").get<int>());
  }
  EXPECT_EQ(gradients, (std::map<int, int>{{0, 8}, {1, 8}, {2, 8}, {3, 8}}));
  EXPECT_EQ(averaging, (std::set<int>{0, 1, 2, 3}));
}

TEST(TrainTest, ATraceIsCapped) {
  const TemporaryFolder folder;
  TrainOptions options = small_run();
  options.trace = folder / "trace.json";
  options.trace_spans = 10;
  run(options, with(Method::kBspRing), 2);
  const json trace = json::parse(content_of(options.trace));
  EXPECT_THAT(trace.at("droppedSpans"), Each(::testing::Gt(0)));
}

// Every worker sees its own iterations, and all the same evaluations.
class Counter : public ProgressSink {
 public:
  void started(const StartReport& report) override { first = report.first_iteration; }
  void iteration(const IterationReport&) override { ++iterations; }
  void evaluated(const EvaluationReport& report) override { accuracies.push_back(report.test_accuracy); }
  std::int64_t first = -1;
  int iterations = 0;
  std::vector<double> accuracies;
};

TEST(TrainTest, EveryWorkerCanBeWatched) {
  TrainOptions options = small_run();
  options.evaluate_every = 2;
  std::vector<Counter> counters(2);
  run_ranks(2, [&](World& world) {
    train(world, network(2), options, with(Method::kLocalSgd), &counters[static_cast<std::size_t>(world.rank())]);
  });
  for (const Counter& counter : counters) {
    EXPECT_EQ(counter.first, 0);
    EXPECT_EQ(counter.iterations, 48);
    EXPECT_EQ(counter.accuracies.size(), 2u);  // after the second epoch and at the end
    EXPECT_EQ(counter.accuracies, counters.front().accuracies);
  }
}

}  // namespace
}  // namespace dssync
