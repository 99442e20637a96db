// Every line is JSON, whatever happens to the run.
#include "dssync/training/log/run_log.h"

#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "dssync/base/error.h"
#include "dssync/base/temporary_folder.h"
#include "dssync/comm/testing.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using testing::content_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::write_file;

namespace fs = std::filesystem;

class RunLogTest : public ::testing::Test {
 protected:
  // Parses all lines; throws where one is no JSON or the last one has no end.
  std::vector<json> lines() const {
    std::istringstream text(content_of(file_));
    std::vector<json> parsed;
    for (std::string line; std::getline(text, line);) {
      EXPECT_FALSE(text.eof()) << "the last line has no end";
      parsed.push_back(json::parse(line));
    }
    return parsed;
  }

  std::vector<std::string> events() const {
    std::vector<std::string> names;
    for (const json& line : lines()) names.push_back(line.at("event"));
    return names;
  }

  TemporaryFolder folder_;
  fs::path file_ = folder_ / "run.jsonl";
};

StartReport start_report() {
  StartReport report;
  report.method = "ds-sync";
  report.workers = 8;
  report.options = {
      {"overlap", true}, {"epochs", std::int64_t{4}}, {"learning_rate", 0.1}, {"model", std::string("cnn")}};
  report.plan = {{"rounds", std::vector<std::string>{"all", "nobody"}}};
  return report;
}

TEST_F(RunLogTest, TellsTheNetworkAndWhatItsLinksCarried) {
  const Topology topology = testing::racks(2, 1, 4, 1);
  Plan plan;
  plan.rounds = {{"all", {{0, 1}}}};
  RunLog log(file_, RunLog::Mode::kReplace);
  log.network({&topology, "net.yaml", true, &plan, 0.5, cost_of(plan.rounds, 1, topology, 8)});
  log.network({&topology, "net.yaml", false, nullptr, 0, cost_of(plan.rounds, 1, topology, 8)});
  log.traffic({.iteration = 3,
               .iterations = 2,
               .seconds = 1.5,
               .topology = &topology,
               .bytes = {10, 20, 30, 40, 50, 60, 70, 80}});

  EXPECT_THAT(events(), ElementsAre("network", "network", "traffic"));
  const auto all = lines();
  EXPECT_EQ(all[0].at("source"), "net.yaml");
  EXPECT_EQ(all[0].at("emulated"), true);
  EXPECT_EQ(all[0].at("nodes").size(), topology.nodes().size());
  EXPECT_EQ(all[0].at("plan").at("rounds").at(0).at("groups"), json({{0, 1}}));
  // A pair sends its 8 bytes over uplinks of 1 byte a second.
  EXPECT_EQ(all[0].at("cost").at("seconds_per_iteration"), 8.0);
  EXPECT_FALSE(all[1].contains("plan"));
  EXPECT_EQ(all[2].at("iterations"), 2);
  EXPECT_EQ(all[2].at("links").at(1), json({{"name", topology.links()[1].name}, {"bytes", 20}}));
}

TEST_F(RunLogTest, WritesWhatItIsGiven) {
  RunLog log(file_, RunLog::Mode::kReplace);
  log.started(start_report());
  log.iteration({.epoch = 1, .iteration = 7, .loss = 2.5, .bytes_sent = 1'000});
  log.evaluated({.epoch = 1, .iteration = 7, .test_accuracy = 0.75});
  log.checkpoint({.iteration = 7, .folder = "there"});
  log.finished({.method = "ds-sync", .iterations = 7, .seconds = 1.5, .test_accuracy = 0.75});

  EXPECT_THAT(events(), ElementsAre("started", "iteration", "evaluated", "checkpoint", "finished"));
  const auto all = lines();
  EXPECT_EQ(all[0].at("options").at("learning_rate"), 0.1);
  EXPECT_EQ(all[0].at("options").at("overlap"), true);
  EXPECT_EQ(all[0].at("plan").at("rounds"), json({"all", "nobody"}));
  EXPECT_EQ(all[1].at("loss"), 2.5);
  EXPECT_EQ(all[1].at("bytes_sent"), 1'000);
  EXPECT_EQ(all[2].at("test_accuracy"), 0.75);
  EXPECT_EQ(all[4].at("method"), "ds-sync");
  EXPECT_EQ(all[4].at("iterations"), 7);
  EXPECT_EQ(all[4].at("seconds"), 1.5);
}

TEST_F(RunLogTest, IsInTheFileAtOnce) {
  RunLog log(file_, RunLog::Mode::kReplace);
  for (int iteration = 1; iteration < 4; ++iteration) {
    log.iteration({.iteration = iteration});
    EXPECT_EQ(lines().back().at("iteration"), iteration);
  }
}

TEST_F(RunLogTest, EndsOnce) {
  RunLog log(file_, RunLog::Mode::kReplace);
  log.iteration({.iteration = 3});
  log.interrupted("SIGTERM");
  log.iteration({.iteration = 4});
  log.failed("a peer is lost");
  log.finished({});
  EXPECT_THAT(events(), ElementsAre("iteration", "interrupted"));
  EXPECT_EQ(lines().back().at("cause"), "SIGTERM");
  EXPECT_EQ(lines().back().at("iterations"), 3);
}

TEST_F(RunLogTest, MayBeEndedByAnotherThread) {
  RunLog log(file_, RunLog::Mode::kReplace);
  std::thread watcher;
  for (int iteration = 1; iteration <= 2'000; ++iteration) {
    log.iteration({.iteration = iteration, .loss = 1.0 / iteration});
    if (iteration == 500) watcher = std::thread([&log] { log.interrupted("SIGINT"); });
  }
  watcher.join();
  log.finished({});
  const auto all = lines();
  EXPECT_EQ(all.back().at("event"), "interrupted");
  for (std::size_t line = 0; line + 1 < all.size(); ++line) EXPECT_EQ(all[line].at("iteration"), line + 1);
}

TEST_F(RunLogTest, ReplacesAnOldLog) {
  write_file(file_, "something\nelse\n");
  RunLog log(file_, RunLog::Mode::kReplace);
  log.started(start_report());
  EXPECT_THAT(events(), ElementsAre("started"));
}

TEST_F(RunLogTest, ANewPlanSaysWhy) {
  const Topology network = testing::racks(2, 2, 25e6, 5e6);
  PlanChange change{.plan = *Planner(network, 1e6).best(0.5),
                    .network = network,
                    .iteration = 43,
                    .seconds_before = 0.5,
                    .seconds_after = 0.2,
                    .explanation = "the core is slow"};
  change.links.push_back({network.node(1).up, {25e6}, {5e6}, {19e6}});
  RunLog log(file_, RunLog::Mode::kReplace);
  log.replanned(change, 12.5);
  const auto line = lines().at(0);
  EXPECT_EQ(line.at("event"), "replanned");
  EXPECT_EQ(line.at("iteration"), 43);
  EXPECT_EQ(line.at("seconds"), 12.5);
  EXPECT_EQ(line.at("reason"), "the core is slow");
  EXPECT_EQ(line.at("links").at(0).at("name"), network.link(network.node(1).up).name);
  EXPECT_EQ(line.at("links").at(0).at("from_bytes_per_second"), 25e6);
  EXPECT_EQ(line.at("links").at(0).at("others_bytes_per_second"), 19e6);
  EXPECT_EQ(line.at("links").at(0).at("to_bytes_per_second"), 5e6);
  EXPECT_EQ(line.at("seconds_per_iteration_before"), 0.5);
  EXPECT_EQ(line.at("seconds_per_iteration_after"), 0.2);
  EXPECT_EQ(line.at("plan").at("rounds").size(), change.plan.rounds.size());
}

TEST_F(RunLogTest, GoesOnWhenResumed) {
  {
    RunLog log(file_, RunLog::Mode::kReplace);
    log.started(start_report());
    log.interrupted("SIGINT");
  }
  StartReport again = start_report();
  again.first_iteration = 40;
  RunLog log(file_, RunLog::Mode::kAppend);
  log.started(again);
  log.failed("later");
  EXPECT_THAT(events(), ElementsAre("started", "interrupted", "resumed", "failed"));
  EXPECT_EQ(lines()[2].at("first_iteration"), 40);
  EXPECT_EQ(lines()[3].at("iterations"), 40);
}

TEST_F(RunLogTest, ResumedWithoutALogStartsOne) {
  RunLog log(file_, RunLog::Mode::kAppend);
  log.started(start_report());
  EXPECT_THAT(events(), ElementsAre("started"));
}

TEST_F(RunLogTest, RemovesALineThatACrashCutOff) {
  for (const std::size_t rest : {std::size_t{1}, std::size_t{4'095}, std::size_t{4'096}, std::size_t{9'000}}) {
    write_file(file_, "{\"event\":\"started\"}\n" + std::string(rest, 'x'));
    RunLog log(file_, RunLog::Mode::kAppend);
    log.failed("again");
    EXPECT_THAT(events(), ElementsAre("started", "failed")) << rest;
  }
  write_file(file_, "no line at all");
  RunLog(file_, RunLog::Mode::kAppend).failed("again");
  EXPECT_THAT(events(), ElementsAre("failed"));
}

TEST_F(RunLogTest, StaysJsonWithStrangeContent) {
  RunLog log(file_, RunLog::Mode::kReplace);
  log.iteration({.loss = std::numeric_limits<double>::quiet_NaN(), .disagreement = 1.0 / 0.0});
  log.failed("line\nbreak, \"quotes\", \xff\xfe bytes");
  EXPECT_TRUE(lines()[0].at("loss").is_null());
  EXPECT_THAT(lines()[1].at("cause").get<std::string>(), HasSubstr("line\nbreak, \"quotes\", "));
}

TEST_F(RunLogTest, AFullDiskIsAnErrorThatNamesTheFile) {
  RunLog log("/dev/full", RunLog::Mode::kReplace);
  EXPECT_THAT(message_of<Error>([&] { log.iteration({}); }),
              AllOf(StartsWith("/dev/full: "), HasSubstr("No space left on device")));
}

TEST_F(RunLogTest, WhatCannotBeOpenedIsBadInput) {
  EXPECT_THAT(message_of<InputError>([&] { RunLog log(folder_ / "missing/run.jsonl", RunLog::Mode::kReplace); }),
              AllOf(HasSubstr("missing/run.jsonl: the log cannot be written"), HasSubstr("No such file")));
  EXPECT_THAT(message_of<InputError>([&] { RunLog log(folder_.path(), RunLog::Mode::kAppend); }),
              HasSubstr("Is a directory"));
}

}  // namespace
}  // namespace dssync
