// What the flags of `train` become, and which do not go together. Few tests with many cases: loading PyTorch takes
// longer than all of them.
#include "train/train.h"

#include <algorithm>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"

namespace dssync::cli {
namespace {

using ::testing::HasSubstr;

TrainCommand parse(std::vector<std::string> arguments) {
  CLI::App app("", "dssync train");
  TrainCommand command;
  add_train_flags(app, command);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  app.parse(arguments);
  resolve_flags(app, command);
  return command;
}

std::string problem_of(const std::vector<std::string>& arguments) {
  try {
    parse(arguments);
  } catch (const InputError& error) {
    return error.what();
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "no error";
}

struct Refusal {
  std::vector<std::string> arguments;
  std::vector<std::string> words;
};

void expect_refusals(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    const std::string problem = problem_of(refusal.arguments);
    for (const std::string& word : refusal.words) EXPECT_THAT(problem, HasSubstr(word));
  }
}

TEST(TrainFlagsTest, Defaults) {
  const TrainCommand command = parse({});
  EXPECT_FALSE(command.network.topology);
  EXPECT_EQ(command.network.workers, 0);
  EXPECT_EQ(command.sync.method, Method::kDsSync);
  EXPECT_EQ(command.sync.disagreement, 0.25);
  EXPECT_FALSE(command.sync.published);
  EXPECT_EQ(command.sync.overlap, Overlap::kAuto);
  EXPECT_EQ(command.sync.state, StateTreatment::kAuto);
  EXPECT_FALSE(command.network.timeout);
  EXPECT_EQ(command.network.port, 0);
  EXPECT_FALSE(command.training.resume);
}

TEST(TrainFlagsTest, EveryFlagArrives) {
  const TrainCommand command = parse({"--topology",
                                      "net.yaml",
                                      "--workers",
                                      "4",
                                      "--nic",
                                      "8Gbps",
                                      "--uplink",
                                      "80Mbps",
                                      "--timeout",
                                      "1.5s",
                                      "--port",
                                      "1234",
                                      "--data",
                                      "fashion-mnist",
                                      "--data-folder",
                                      "here",
                                      "--train-examples",
                                      "100",
                                      "--test-examples",
                                      "50",
                                      "--model",
                                      "resnet",
                                      "--seed",
                                      "7",
                                      "--epochs",
                                      "3",
                                      "--iterations",
                                      "9",
                                      "--batch",
                                      "16",
                                      "--evaluate-every",
                                      "0",
                                      "--compute",
                                      "50ms",
                                      "--threads",
                                      "2",
                                      "--optimizer",
                                      "sgd",
                                      "--learning-rate",
                                      "0.25",
                                      "--warmup",
                                      "0.75",
                                      "--momentum",
                                      "0.5",
                                      "--weight-decay",
                                      "0",
                                      "--disagreement",
                                      "0.1",
                                      "--group-limit",
                                      "4",
                                      "--global-warmup",
                                      "20",
                                      "--overlap",
                                      "combine",
                                      "--optimizer-state",
                                      "rotating",
                                      "--state-period",
                                      "6",
                                      "--log",
                                      "a.jsonl",
                                      "--trace",
                                      "b.json",
                                      "--checkpoint",
                                      "c",
                                      "--checkpoint-every",
                                      "2",
                                      "--checkpoint-every-iterations",
                                      "5",
                                      "--resume",
                                      "--format",
                                      "json",
                                      "--color",
                                      "never"});
  EXPECT_EQ(command.network.topology, "net.yaml");
  EXPECT_EQ(command.network.workers, 4);
  EXPECT_EQ(command.network.assumptions.nic, Bandwidth{1e9});
  EXPECT_EQ(command.network.assumptions.uplink, Bandwidth{1e7});
  EXPECT_EQ(command.network.timeout, Seconds(1.5));
  EXPECT_EQ(command.network.port, 1234);
  const TrainOptions& training = command.training;
  EXPECT_EQ(training.data.folder, "here");
  EXPECT_EQ(training.data.train_examples, 100);
  EXPECT_EQ(training.data.test_examples, 50);
  EXPECT_EQ(training.model.name, "resnet");
  EXPECT_EQ(training.seed, 7U);
  EXPECT_EQ(training.epochs, 3);
  EXPECT_EQ(training.max_iterations, 9);
  EXPECT_EQ(training.batch_size, 16);
  EXPECT_EQ(training.evaluate_every, 0);
  EXPECT_EQ(training.compute, Seconds(0.05));
  EXPECT_EQ(training.threads, 2);
  EXPECT_EQ(training.learning_rate, 0.25);
  EXPECT_EQ(training.warmup_epochs, 0.75);
  EXPECT_EQ(training.momentum, 0.5);
  EXPECT_EQ(training.weight_decay, 0);
  EXPECT_EQ(training.log, "a.jsonl");
  EXPECT_EQ(training.trace, "b.json");
  EXPECT_EQ(training.checkpoint_folder, "c");
  EXPECT_EQ(training.checkpoint_every_epochs, 2);
  EXPECT_EQ(training.checkpoint_every_iterations, 5);
  EXPECT_TRUE(training.resume);
  EXPECT_EQ(command.sync.disagreement, 0.1);
  EXPECT_EQ(command.sync.group_limit, 4);
  EXPECT_EQ(command.sync.warmup_iterations, 20);
  EXPECT_EQ(command.sync.overlap, Overlap::kCombine);
  EXPECT_EQ(command.sync.state_period, 6);
  EXPECT_EQ(command.format, "json");
}

TEST(TrainFlagsTest, TextAndItsModel) {
  const TrainOptions training = parse({"--data",
                                       "text",
                                       "--data-folder",
                                       "here",
                                       "--context",
                                       "32",
                                       "--model",
                                       "transformer",
                                       "--layers",
                                       "3",
                                       "--width",
                                       "48",
                                       "--heads",
                                       "6",
                                       "--optimizer",
                                       "adamw",
                                       "--betas",
                                       "0.8,0.95",
                                       "--clip-norm",
                                       "1.5",
                                       "--iterations",
                                       "600",
                                       "--warmup-iterations",
                                       "50"})
                                    .training;
  EXPECT_EQ(training.data.name, "text");
  EXPECT_EQ(training.data.folder, "here");
  EXPECT_EQ(training.data.context, 32);
  EXPECT_EQ(training.model.transformer.layers, 3);
  EXPECT_EQ(training.model.transformer.width, 48);
  EXPECT_EQ(training.model.transformer.heads, 6);
  EXPECT_EQ(training.betas.first, 0.8);
  EXPECT_EQ(training.betas.second, 0.95);
  EXPECT_EQ(training.clip_norm, 1.5);
  EXPECT_EQ(training.max_iterations, 600);
  EXPECT_FALSE(training.epochs);
  EXPECT_EQ(training.warmup_iterations, 50);
}

TEST(TrainFlagsTest, ClicksTheirModelAndTheMean) {
  const TrainOptions training = parse({"--data", "clicks", "--rows", "800", "--model", "deepfm", "--optimizer", "adam",
                                       "--swa", "300", "--final-rate", "0.001"})
                                    .training;
  EXPECT_EQ(training.data.rows, 800);
  EXPECT_EQ(training.model.name, "deepfm");
  EXPECT_EQ(training.optimizer, "adam");
  EXPECT_EQ(training.swa_start, 300);
  EXPECT_EQ(training.final_rate, 0.001);
}

TEST(TrainFlagsTest, NetworksToFindOutAndToEmulate) {
  const NetworkFlags hidden =
      parse({"--topology", "auto", "--emulate", "net.yaml", "--save-topology", "found.yaml"}).network;
  EXPECT_TRUE(hidden.is_discovered() && hidden.emulate);
  EXPECT_EQ(hidden.emulated, "net.yaml");
  EXPECT_EQ(hidden.save_topology, "found.yaml");
  EXPECT_EQ(hidden.source(), "auto");
  const NetworkFlags told = parse({"--emulate", "--topology", "net.yaml"}).network;
  EXPECT_TRUE(!told.is_discovered() && told.emulate && told.emulated.empty());
  EXPECT_FALSE(parse({"--topology", "./auto"}).network.is_discovered());
  EXPECT_FALSE(parse({}).network.emulate);
}

TEST(TrainFlagsTest, FlagsOfTheMethods) {
  EXPECT_EQ(parse({"--method", "bsp-ring", "--bucket", "2MB"}).sync.bucket_bytes, 2'000'000);
  EXPECT_EQ(parse({"--method", "local-sgd", "--period", "5", "--overlap", "none"}).sync.period, 5);
  EXPECT_EQ(parse({"--in-line"}).sync.overlap, Overlap::kInLine);
  EXPECT_EQ(parse({"--method", "ssp", "--staleness", "0"}).sync.staleness, 0);
  EXPECT_TRUE(parse({"--schedule", "published"}).sync.published);
  EXPECT_EQ(parse({"--optimizer-state", "averaged"}).sync.state, StateTreatment::kAveraged);
  EXPECT_EQ(parse({"--optimizer-state", "local"}).sync.state, StateTreatment::kLocal);
  EXPECT_EQ(parse({"--model", "mlp", "--hidden", "300"}).training.model.hidden, 300);
  expect_refusals({
      {{"--method", "bsp-ring", "--adapt"}, {"--adapt belongs to --method ds-sync", "is bsp-ring"}},
      {{"--method", "local-sgd", "--no-adapt"}, {"--no-adapt", "ds-sync", "is local-sgd"}},
      {{"--method", "bsp-ring", "--disagreement", "0.5"},
       {"--disagreement belongs to --method ds-sync", "is bsp-ring"}},
      {{"--method", "ps", "--group-limit", "2"}, {"--group-limit", "ds-sync", "is ps"}},
      {{"--method", "ssp", "--overlap", "auto"}, {"--overlap", "ds-sync or local-sgd", "is ssp"}},
      {{"--method", "bsp-ring", "--in-line"}, {"--in-line", "ds-sync or local-sgd"}},
      {{"--method", "local-sgd", "--schedule", "published"}, {"--schedule", "ds-sync", "is local-sgd"}},
      {{"--method", "local-sgd", "--optimizer-state", "local"}, {"--optimizer-state", "ds-sync"}},
      {{"--method", "asp", "--staleness", "2"}, {"--staleness", "ssp", "is asp"}},
      {{"--period", "4"}, {"--period", "local-sgd", "is ds-sync"}},
      {{"--bucket", "1MB"}, {"--bucket", "bsp-ring or bsp-hierarchical or ps", "is ds-sync"}},
      {{"--method", "asp", "--global-warmup", "2"}, {"--global-warmup", "ds-sync"}},
  });
}

TEST(TrainFlagsTest, PlansAdaptUnlessToldOtherwise) {
  EXPECT_TRUE(parse({}).sync.adapt);
  EXPECT_TRUE(parse({"--adapt"}).sync.adapt);
  EXPECT_FALSE(parse({"--no-adapt"}).sync.adapt);
  EXPECT_FALSE(parse({"--schedule", "published"}).sync.adapt);
  EXPECT_FALSE(parse({"--method", "bsp-ring"}).sync.adapt);
  EXPECT_FALSE(parse({"--disagreement", "0.5"}).sync.steer);
  EXPECT_TRUE(parse({"--disagreement", "auto"}).sync.steer);
  EXPECT_EQ(parse({"--disagreement", "auto"}).sync.disagreement, 0.25);
  EXPECT_EQ(parse({"--disagreement", "auto:0.3"}).sync.disagreement, 0.3);
}

TEST(TrainFlagsTest, FlagsThatNeedAnother) {
  expect_refusals({
      {{"--adapt", "--no-adapt"}, {"--adapt and --no-adapt exclude each other"}},
      {{"--adapt", "--schedule", "published"}, {"--adapt needs --schedule auto"}},
      {{"--disagreement", "auto", "--no-adapt"}, {"--disagreement auto needs --adapt"}},
      {{"--disagreement", "auto", "--group-limit", "2"}, {"--disagreement auto and --group-limit exclude each other"}},
      {{"--model", "cnn", "--hidden", "9"}, {"--hidden needs --model mlp"}},
      {{"--layers", "3"}, {"--layers needs --model transformer"}},
      {{"--context", "32"}, {"--context needs --data text"}},
      {{"--rows", "80"}, {"--rows needs --data clicks"}},
      {{"--model", "transformer"}, {"model transformer is made for text, and the data is images"}},
      {{"--data", "text"}, {"model cnn is made for images, and the data is text"}},
      {{"--betas", "0.9,0.95"}, {"--betas needs --optimizer adam or adamw"}},
      {{"--warmup", "1", "--warmup-iterations", "9"}, {"warm-up is given in epochs and in iterations"}},
      {{"--resume"}, {"--resume needs --checkpoint"}},
      {{"--checkpoint-every", "2"}, {"--checkpoint-every needs --checkpoint"}},
      {{"--checkpoint-every-iterations", "2"}, {"--checkpoint-every-iterations needs --checkpoint"}},
      {{"--optimizer", "adamw", "--momentum", "0.9"}, {"--momentum needs --optimizer sgd"}},
      {{"--data", "synthetic", "--data-folder", "x"}, {"--data-folder needs --data fashion-mnist or text"}},
      {{"--optimizer-state", "local", "--state-period", "2"}, {"--state-period needs --optimizer-state rotating"}},
      {{"--schedule", "published", "--disagreement", "1"}, {"--disagreement needs --schedule auto"}},
      {{"--overlap", "layered", "--in-line"}, {"--overlap and --in-line exclude each other"}},
  });
}

TEST(TrainFlagsTest, ValuesThatMakeNoSense) {
  expect_refusals({
      {{"--workers", "0"}, {"--workers", "from 1 to 10000", "'0'"}},
      {{"--topology", ""}, {"--topology", "a path"}},
      {{"--log", ""}, {"--log", "a path"}},
      {{"--method", "magic"}, {"--method", "magic", "ds-sync"}},
      {{"--model", "gpt"}, {"--model", "gpt", "cnn"}},
      {{"--data", "imagenet"}, {"--data", "imagenet", "synthetic"}},
      {{"--epochs", "0"}, {"--epochs", "at least 1", "'0'"}},
      {{"--iterations", "-1"}, {"--iterations", "at least 1", "'-1'"}},
      {{"--batch", "x"}, {"--batch", "'x'"}},
      {{"--learning-rate", "0"}, {"--learning-rate", "above 0"}},
      {{"--learning-rate", "nan"}, {"--learning-rate", "above 0"}},
      {{"--momentum", "-0.1"}, {"--momentum", "at least 0"}},
      {{"--warmup", "inf"}, {"--warmup", "at least 0"}},
      {{"--seed", "-1"}, {"--seed", "at least 0"}},
      {{"--compute", "50"}, {"--compute", "no unit"}},
      {{"--timeout", "0s"}, {"--timeout", "100ms"}},
      {{"--timeout", "2000min"}, {"--timeout", "1440min"}},
      {{"--port", "0"}, {"--port", "from 1 to 65535"}},
      {{"--port", "70000"}, {"--port", "from 1 to 65535"}},
      {{"--nic", "10"}, {"--nic", "no unit"}},
      {{"--method", "bsp-ring", "--bucket", "1"}, {"--bucket", "no unit"}},
      {{"--group-limit", "1"}, {"--group-limit", "at least 2"}},
      {{"--threads", "0"}, {"--threads", "from 1"}},
      {{"--disagreement", "auto:x"}, {"--disagreement", "at least 0", "'x'"}},
      {{"--hidden", "0"}, {"--hidden", "from 1"}},
      {{"--state-period", "0"}, {"--state-period", "at least 1"}},
      {{"--clip-norm", "0"}, {"--clip-norm", "above 0"}},
      {{"--data", "clicks", "--model", "deepfm", "--rows", "100"}, {"100 rows", "multiple of 8"}},
      {{"--swa", "0"}, {"--swa", "at least 1"}},
      {{"--final-rate", "-1"}, {"--final-rate", "at least 0"}},
      {{"--optimizer", "adamw", "--betas", "0.9"}, {"--betas", "two numbers with a comma", "'0.9'"}},
      {{"--optimizer", "adamw", "--betas", "0.9,1"}, {"--betas", "below 1", "'0.9,1'"}},
      {{"--warmup-iterations", "-1"}, {"--warmup-iterations", "at least 0"}},
  });
}

}  // namespace
}  // namespace dssync::cli
