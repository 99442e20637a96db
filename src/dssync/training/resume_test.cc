// Runs that end and go on: with the same bits, as they began, or not at all.
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "dssync/base/error.h"
#include "dssync/training/checkpoints/checkpoint_folder.h"
#include "dssync/training/testing.h"

namespace dssync {
namespace {

using ::testing::AllOf;
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
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::with;

namespace fs = std::filesystem;

// How a run could be interrupted.
struct Interruption {
  std::string name;
  SyncOptions sync;
  std::string model = "mlp";
  std::string optimizer = "sgd";
  std::int64_t at = 11;  // in the middle of an epoch
};

void PrintTo(const Interruption& interruption, std::ostream* out) { *out << interruption.name; }

Interruption ds_sync(std::string name, Overlap overlap, StateTreatment state) {
  Interruption interruption{std::move(name), with(Method::kDsSync)};
  interruption.sync.overlap = overlap;
  interruption.sync.state = state;
  if (overlap == Overlap::kCombine) interruption.sync.disagreement += 1;  // for the step that these averages miss
  return interruption;
}

class ResumeTest : public ::testing::TestWithParam<Interruption> {
 protected:
  ResumeTest() {
    options_ = GetParam().model == "transformer" ? small_text_run()
               : GetParam().model == "deepfm"    ? small_click_run()
                                                 : small_run();
    options_.model.name = GetParam().model;
    options_.optimizer = GetParam().optimizer;
    options_.swa_start = 6;
    if (options_.model.name == "resnet") options_.data.train_examples = 256;
    if (options_.optimizer == "adamw") options_.learning_rate = 0.002;
  }

  // The last checkpoint of every worker.
  static std::vector<Checkpoint> last_state(const fs::path& folder) {
    std::vector<Checkpoint> all;
    for (int rank = 0; rank < kWorkers; ++rank) {
      const CheckpointFolder checkpoints(folder, rank);
      all.push_back(read_checkpoint(checkpoints.file_of(checkpoints.latest()), checkpoints.latest(), rank));
    }
    return all;
  }

  static void expect_same(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t index = 0; index < a.size(); ++index) {
      EXPECT_TRUE(at::equal(a[index].tensor, b[index].tensor)) << a[index].name;
    }
  }

  TemporaryFolder folder_;
  TrainOptions options_;
};

TEST_P(ResumeTest, EndsWithTheBitsOfAnUninterruptedRun) {
  options_.checkpoint_folder = folder_ / "whole";
  options_.checkpoint_every_epochs = 0;
  const TrainResult whole = run(options_, GetParam().sync).front();

  options_.checkpoint_folder = folder_ / "parts";
  options_.checkpoint_every_iterations = 3;
  options_.max_iterations = GetParam().at;
  EXPECT_EQ(run(options_, GetParam().sync).front().iterations, GetParam().at);
  options_.max_iterations = 0;
  options_.resume = true;
  const TrainResult resumed = run(options_, GetParam().sync).front();

  EXPECT_EQ(resumed.iterations, whole.iterations);
  EXPECT_EQ(resumed.test_loss, whole.test_loss);
  EXPECT_EQ(resumed.test_accuracy, whole.test_accuracy);
  EXPECT_EQ(resumed.swa->test_loss, whole.swa->test_loss);
  const auto expected = last_state(folder_ / "whole");
  const auto found = last_state(folder_ / "parts");
  for (std::size_t rank = 0; rank < kWorkers; ++rank) {
    expect_same(found[rank].parameters, expected[rank].parameters);
    expect_same(found[rank].buffers, expected[rank].buffers);
    expect_same(found[rank].mean, expected[rank].mean);
    EXPECT_EQ(found[rank].mean_count, expected[rank].mean_count);
    ASSERT_EQ(found[rank].optimizer.size(), expected[rank].optimizer.size());
    for (std::size_t kind = 0; kind < expected[rank].optimizer.size(); ++kind) {
      expect_same(found[rank].optimizer[kind].tensors, expected[rank].optimizer[kind].tensors);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Runs, ResumeTest,
    ::testing::Values(Interruption{"BspRing", with(Method::kBspRing)},
                      Interruption{"BspHierarchicalResidual", with(Method::kBspHierarchical), "resnet", "sgd", 5},
                      Interruption{"ParameterServer", with(Method::kPs)},
                      Interruption{"LocalSgd", with(Method::kLocalSgd)},
                      Interruption{"LocalSgdAtTheEndOfAnEpoch", with(Method::kLocalSgd), "mlp", "sgd", 16},
                      ds_sync("DsSyncRotating", Overlap::kInLine, StateTreatment::kRotating),
                      ds_sync("DsSyncAveraged", Overlap::kLayered, StateTreatment::kAveraged),
                      ds_sync("DsSyncLocal", Overlap::kInLine, StateTreatment::kLocal),
                      ds_sync("DsSyncLayered", Overlap::kLayered, StateTreatment::kRotating),
                      ds_sync("DsSyncCombined", Overlap::kCombine, StateTreatment::kRotating),
                      Interruption{"DsSyncAdamW", with(Method::kDsSync), "mlp", "adamw"},
                      Interruption{"DsSyncTransformer", with(Method::kDsSync), "transformer", "adamw"},
                      Interruption{"DsSyncClicks", with(Method::kDsSync), "deepfm", "adam"},
                      Interruption{"DsSyncResidual", with(Method::kDsSync), "resnet", "sgd", 5}),
    [](const auto& tested) { return tested.param.name; });

// They are never the same twice, so that only this can be asked.
TEST(AsynchronousTest, ResumesWhereItWas) {
  for (const Method method : {Method::kAsp, Method::kSsp}) {
    const TemporaryFolder folder;
    TrainOptions options = small_run();
    options.checkpoint_folder = folder.path();
    options.max_iterations = 20;
    const double loss = run(options, with(method)).front().test_loss;
    options.resume = true;
    EXPECT_EQ(run(options, with(method)).front().test_loss, loss);  // nothing left to do, but to evaluate
    options.max_iterations = 0;
    const TrainResult resumed = run(options, with(method)).front();
    EXPECT_EQ(resumed.iterations, 24);
    EXPECT_GT(resumed.test_accuracy, 0.25);
  }
}

class CheckpointedRunTest : public ::testing::Test {
 protected:
  CheckpointedRunTest() {
    options_ = small_run();
    options_.checkpoint_folder = folder_ / "checkpoints";
    options_.log = folder_ / "run.jsonl";
  }

  std::string refused(int workers = 2, Method method = Method::kBspRing) {
    return message_of<InputError>([&] { run(options_, with(method), workers); });
  }

  void interrupt_at(std::int64_t iteration) {
    options_.max_iterations = iteration;
    run(options_, with(Method::kBspRing), 2);
    options_.max_iterations = 0;
    options_.resume = true;
  }

  TemporaryFolder folder_;
  TrainOptions options_;
};

TEST_F(CheckpointedRunTest, SavingChangesNothing) {
  options_.checkpoint_every_iterations = 2;
  const auto saving = run(options_, with(Method::kLocalSgd)).front();
  EXPECT_EQ(events_of(options_.log, "checkpoint").size(), 12u);
  const fs::directory_iterator left(options_.checkpoint_folder);
  EXPECT_EQ(std::distance(begin(left), end(left)), 3);  // `latest` and the last two
  const auto losses = events_of(options_.log, "iteration");
  options_.checkpoint_folder.clear();
  EXPECT_EQ(run(options_, with(Method::kLocalSgd)).front().test_loss, saving.test_loss);
  const auto without = events_of(options_.log, "iteration");
  for (std::size_t index = 0; index < losses.size(); ++index) {
    EXPECT_EQ(losses[index].at("loss"), without[index].at("loss")) << index;
  }
}

TEST_F(CheckpointedRunTest, TheLogGoesOn) {
  interrupt_at(5);
  run(options_, with(Method::kBspRing), 2);
  const auto lines = lines_of(options_.log);
  EXPECT_EQ(lines.front().at("event"), "started");
  EXPECT_EQ(events_of(options_.log, "resumed").front().at("first_iteration"), 5);
  const auto iterations = events_of(options_.log, "iteration");
  for (std::size_t index = 0; index < iterations.size(); ++index) {
    EXPECT_EQ(iterations[index].at("iteration"), index + 1);
  }
  EXPECT_EQ(iterations.size(), 48u);  // 2 workers: 16 in each epoch
  EXPECT_GT(iterations[5].at("seconds").get<double>(), iterations[4].at("seconds").get<double>());
  EXPECT_EQ(lines.back().at("event"), "finished");
}

TEST_F(CheckpointedRunTest, AFinishedRunHasNothingLeftToDo) {
  const auto whole = run(options_, with(Method::kBspRing), 2).front();
  options_.resume = true;
  const auto again = run(options_, with(Method::kBspRing), 2).front();
  EXPECT_EQ(again.iterations, whole.iterations);
  EXPECT_EQ(again.test_loss, whole.test_loss);
}

TEST_F(CheckpointedRunTest, GoesOnOnlyAsItBegan) {
  interrupt_at(5);
  EXPECT_THAT(refused(4), HasSubstr("workers was 2 when this checkpoint was written, and is 4 now"));
  EXPECT_THAT(refused(2, Method::kPs), HasSubstr("method was bsp-ring"));
  options_.seed = 2;
  EXPECT_THAT(refused(), HasSubstr("seed was 1"));
  options_.seed = 1;
  options_.model.name = "cnn";
  EXPECT_THAT(refused(), HasSubstr("model was mlp"));
  options_.model.name = "mlp";
  options_.learning_rate = 0.01;
  EXPECT_THAT(refused(), HasSubstr("learning rate was 0.05"));
  EXPECT_EQ(lines_of(options_.log).back().at("event"), "failed");
}

TEST_F(CheckpointedRunTest, SaysThatThereIsNothingToGoOnFrom) {
  options_.resume = true;
  EXPECT_THAT(refused(), HasSubstr("checkpoints: there is no checkpoint to go on from"));
}

TEST_F(CheckpointedRunTest, ADamagedPartIsNamed) {
  interrupt_at(5);
  const CheckpointFolder checkpoints(options_.checkpoint_folder, 1);
  const fs::path file = checkpoints.file_of(checkpoints.latest());
  fs::resize_file(file, fs::file_size(file) - 100);
  std::mutex mutex;
  std::map<int, std::string> messages;
  run_ranks(
      2,
      [&](World& world) {
        try {
          train(world, network(2), options_, with(Method::kBspRing));
        } catch (const Error& error) {
          const std::lock_guard lock(mutex);
          messages[world.rank()] = error.what();
        }
      },
      std::chrono::seconds(3));
  EXPECT_THAT(messages[1], AllOf(StartsWith(file.string()), HasSubstr("rank 1 is truncated")));
  EXPECT_THAT(messages[0], AllOf(HasSubstr("rank 1 failed: "), HasSubstr("is truncated")));
  EXPECT_THAT(lines_of(options_.log).back().at("cause").get<std::string>(), HasSubstr("is truncated"));
}

TEST_F(CheckpointedRunTest, AFolderThatCannotBeWrittenEndsTheRun) {
  options_.checkpoint_folder = "/proc/checkpoints";
  const std::string message = message_of<Error>([&] { run(options_, with(Method::kBspRing), 2); });
  EXPECT_THAT(message, AllOf(HasSubstr("/proc/checkpoints"), HasSubstr("rank 0 cannot be written")));
  EXPECT_EQ(lines_of(options_.log).back().at("event"), "failed");
}

}  // namespace
}  // namespace dssync
