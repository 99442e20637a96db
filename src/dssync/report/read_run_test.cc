#include "dssync/report/read_run.h"

#include <cmath>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"

namespace dssync {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

const std::string kStarted =
    R"({"event":"started","version":"0.1.0","method":"ds-sync","model":"mlp","data":"synthetic","workers":4,"seed":7,)"
    R"("total_iterations":3,"first_iteration":0,"options":{"epochs":2,"trace":"","list":[1,2]},"command":["dssync","train"]})"
    "\n";

std::string iteration(int number, const std::string& loss = "1.5") {
  return R"({"event":"iteration","iteration":)" + std::to_string(number) + R"(,"loss":)" + loss +
         R"(,"iteration_seconds":0.25,"compute_seconds":0.1,"sync_seconds":0.05,"wait_seconds":0.04,"bytes_sent":100,"relative_disagreement":0.5})"
         "\n";
}

TrainingRun read(const std::string& text) {
  std::istringstream input(text);
  return read_run(input, "run.jsonl");
}

std::string problem(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ReadRunTest, TakesSettingsSamplesAndEvaluations) {
  const TrainingRun run = read(kStarted + iteration(1) + iteration(2) +
                               R"({"event":"evaluated","iteration":2,"training_seconds":0.5,"test_accuracy":0.75})"
                               "\n"
                               R"({"event":"finished","iterations":2})"
                               "\n");
  EXPECT_EQ(run.method, "ds-sync");
  EXPECT_EQ(run.seed, 7U);
  EXPECT_EQ(run.workers, 4);
  EXPECT_THAT(run.options, ElementsAre(Pair("epochs", "2"), Pair("trace", ""), Pair("list", "[1,2]")));
  EXPECT_THAT(run.command, ElementsAre("dssync", "train"));
  ASSERT_EQ(run.samples.size(), 2U);
  EXPECT_FLOAT_EQ(run.samples[1].seconds, 0.25F);
  EXPECT_FLOAT_EQ(run.samples[1].wait_seconds, 0.04F);
  EXPECT_EQ(run.bytes_sent, 200);
  ASSERT_EQ(run.evaluations.size(), 1U);
  EXPECT_EQ(run.evaluations[0].accuracy, 0.75);
  EXPECT_EQ(run.ending, Ending::kFinished);
}

TEST(ReadRunTest, LossThatExplodedIsNoNumber) {
  EXPECT_TRUE(std::isnan(read(kStarted + iteration(1, "null")).samples[0].loss));
  EXPECT_TRUE(std::isnan(read(kStarted + iteration(1, "1e300")).samples[0].loss));
}

TEST(ReadRunTest, BothWaysToReadAnIterationAgree) {
  for (const char* loss : {"1.5", "7", "-3", "null", "1e300", "\"no\"", "true", "[1]", "{}"}) {
    const std::string line = iteration(3, loss);
    const std::string spaced = "{ " + line.substr(1);  // not as the log writes it
    const IterationSample fast = read(kStarted + line).samples.at(0);
    const IterationSample slow = read(kStarted + spaced).samples.at(0);
    EXPECT_EQ(fast.iteration, slow.iteration);
    EXPECT_TRUE(fast.loss == slow.loss || (std::isnan(fast.loss) && std::isnan(slow.loss))) << loss;
    EXPECT_EQ(fast.sync_seconds, slow.sync_seconds);
    EXPECT_EQ(fast.wait_seconds, slow.wait_seconds);
    EXPECT_EQ(read(kStarted + line).bytes_sent, read(kStarted + spaced).bytes_sent);
  }
}

TEST(ReadRunTest, TornLastLineIsLeftOut) {
  const TrainingRun run = read(kStarted + iteration(1) + R"({"event":"iterat)");
  EXPECT_TRUE(run.torn);
  EXPECT_EQ(run.samples.size(), 1U);
  EXPECT_EQ(run.ending, Ending::kCutOff);
}

TEST(ReadRunTest, LastLineNeedsNoLineEnd) {
  const TrainingRun run = read(kStarted + R"({"event":"failed","cause":"no","iterations":0})");
  EXPECT_FALSE(run.torn);
  EXPECT_EQ(run.ending, Ending::kFailed);
  EXPECT_EQ(run.cause, "no");
}

TEST(ReadRunTest, ErrorsNameFileAndLine) {
  EXPECT_THAT(problem(""), HasSubstr("run.jsonl: is empty"));
  EXPECT_THAT(problem("\n \n"), HasSubstr("run.jsonl: is empty"));
  EXPECT_THAT(problem("name: rack\n"), HasSubstr("run.jsonl:1: expected a JSON object, but found \"name: rack\""));
  EXPECT_THAT(problem("no log"), HasSubstr("run.jsonl:1: "));
  EXPECT_THAT(problem("[1]\n"), HasSubstr("run.jsonl:1: expected a JSON object"));
  EXPECT_THAT(problem("{\"workers\":8}\n"), HasSubstr("run.jsonl:1: expected a line with an \"event\""));
  EXPECT_THAT(problem(iteration(1)), HasSubstr("run.jsonl:1: expected the event \"started\" first"));
  EXPECT_THAT(problem(kStarted + "{]\n" + iteration(1)), HasSubstr("run.jsonl:2: "));
}

TEST(ReadRunTest, ResumedRunCountsLaterLines) {
  const std::string resumed = R"({"event":"resumed","method":"ds-sync","first_iteration":1,"total_iterations":3})";
  const TrainingRun run = read(kStarted + iteration(1, "4") + iteration(2, "5") +
                               R"({"event":"interrupted","cause":"signal 2","iterations":2})"
                               "\n" +
                               resumed + "\n" + iteration(2, "6"));
  EXPECT_THAT(run.resumed_after, ElementsAre(1));
  ASSERT_EQ(run.samples.size(), 2U);
  EXPECT_EQ(run.samples[1].loss, 6.0F);
  EXPECT_EQ(run.ending, Ending::kCutOff);
  EXPECT_EQ(run.cause, "");
}

TEST(ReadRunTest, UnknownEventsAreCounted) {
  const TrainingRun run =
      read(kStarted + R"({"event":"danced"})"
                      "\n"
                      R"({"event":"danced","with":null})"
                      "\n"
                      R"({"event":"replanned","iteration":5,"seconds":1.5,"reason":"rack-b is slow"})"
                      "\n");
  EXPECT_THAT(run.other_events, ElementsAre(Pair("danced", 2)));
  ASSERT_EQ(run.replanned.size(), 1U);
  EXPECT_EQ(run.replanned[0].reason, "rack-b is slow");
}

TEST(ReadRunTest, TakesNetworkPlanAndTraffic) {
  const TrainingRun run = read(
      kStarted +
      R"({"event":"network","source":"a.yaml","emulated":true,"nodes":[{"name":"core","kind":"switch","parent":null,"bytes_per_second":null,"ranks":[]},{"name":"a","kind":"host","parent":"core","bytes_per_second":5.0,"ranks":[0,1]}],)"
      R"("plan":{"shards":2,"rounds":[{"label":"all","groups":[[0,1]]}],"mixing":{"steady_disagreement":0.4}},)"
      R"("cost":{"seconds_per_iteration":0.3,"bottleneck":"a out","links":[{"name":"a out","bytes_per_iteration":6,"seconds":0.2,"capacity_bytes_per_second":5}]}})"
      "\n"
      R"({"event":"traffic","iteration":1,"iterations":1,"seconds":1,"links":[{"name":"a out","bytes":6}]})"
      "\n"
      R"({"event":"traffic","iteration":2,"iterations":2,"seconds":3,"links":[{"name":"a out","bytes":14}]})"
      "\n");
  ASSERT_TRUE(run.network);
  ASSERT_EQ(run.network->nodes.size(), 2U);
  EXPECT_EQ(run.network->nodes[1].parent, 0);
  EXPECT_THAT(run.network->nodes[1].ranks, ElementsAre(0, 1));
  EXPECT_TRUE(run.network->emulated);
  EXPECT_EQ(run.network->shards, 2);
  EXPECT_EQ(run.network->steady_disagreement, 0.4);
  EXPECT_EQ(run.network->predicted_seconds, 0.3);
  EXPECT_EQ(run.network->links[0].second.bytes_per_iteration, 6);
  ASSERT_TRUE(run.traffic);
  EXPECT_EQ(run.traffic->iterations, 2);
  EXPECT_THAT(run.traffic->bytes, ElementsAre(Pair("a out", 14)));
}

TEST(ReadRunTest, NodesThatAreNoTreeAreLeftOut) {
  for (const char* nodes :
       {R"([{"name":"a","parent":"a"},{"name":"b","parent":null}])", R"([{"name":"a"},{"name":"a","parent":"a"}])",
        R"([{"name":"h","kind":"host"},{"name":"b","parent":"h"}])", R"("none")", R"([1,[],null])"}) {
    const TrainingRun run =
        read(kStarted + R"({"event":"network","nodes":)" + nodes + ",\"plan\":null,\"cost\":null}\n");
    ASSERT_TRUE(run.network);
    EXPECT_TRUE(run.network->nodes.empty()) << nodes;
    EXPECT_EQ(run.network->shards, 0);
  }
}

TEST(ReadRunTest, ValuesOfAnotherKindCountAsMissing) {
  const TrainingRun run = read(R"({"event":"started","method":5,"workers":"many","seed":-1,"options":[],"command":"x"})"
                               "\n" +
                               std::string(R"({"event":"iteration","iteration":"two","bytes_sent":-5})") + "\n");
  EXPECT_EQ(run.method, "");
  EXPECT_EQ(run.workers, 1);
  EXPECT_EQ(run.seed, 0U);
  EXPECT_EQ(run.bytes_sent, 0);
}

TEST(ReadRunTest, DeepNestingIsNotFollowed) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  const TrainingRun run = read(R"({"event":"started","options":{"deep":)" + deep + "}}\n");
  EXPECT_THAT(run.options, ElementsAre(Pair("deep", "...")));
}

TEST(ReadRunTest, MissingFileIsNamed) {
  EXPECT_THROW(read_run(std::filesystem::path("nowhere.jsonl")), InputError);
  EXPECT_THROW(read_run(std::filesystem::path(".")), InputError);
}

}  // namespace
}  // namespace dssync
