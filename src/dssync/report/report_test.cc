// The page as a whole, and the drawings in it.
#include "dssync/report/report.h"

#include <algorithm>
#include <cctype>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/report/comparison.h"
#include "dssync/report/line_chart.h"
#include "dssync/report/link_chart.h"
#include "dssync/report/network_chart.h"
#include "dssync/report/testing.h"

namespace dssync {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t result = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++result;
  return result;
}

std::vector<TrainingRun> full_runs() {
  std::vector<TrainingRun> runs{run_of("ds-sync", 1, {0.7, 0.88}), run_of("ds-sync", 2, {0.7, 0.89}),
                                run_of("bsp-ring", 1, {0.5, 0.6, 0.7, 0.88})};
  for (TrainingRun& run : runs) run.network = two_racks();
  runs[0].traffic = Traffic{.iterations = 4, .seconds = 4, .bytes = {{"rack-a up", 2e6}, {"a0 out", 4e6}}};
  runs[2].network->rounds.clear();
  runs[2].network->shards = 0;
  return runs;
}

TEST(ReportTest, HasEverySection) {
  const std::string page = make_report(full_runs(), {});
  for (const char* id : {"summary", "accuracy", "time", "disagreement", "links", "network", "runs"}) {
    EXPECT_GE(count(page, "<section id=\"" + std::string(id) + "\">"), 1U);
  }
  for (const char* chart : {"time-to-accuracy", "accuracy-time", "accuracy-iterations", "loss", "split", "pace",
                            "disagreement", "links-1", "network-1", "network-2"}) {
    EXPECT_EQ(count(page, "<figure class=\"chart\" id=\"chart-" + std::string(chart) + "\">") +
                  count(page, "<figure class=\"chart wide\" id=\"chart-" + std::string(chart) + "\">"),
              1U)
        << chart;
  }
  EXPECT_EQ(count(page, "<figure class=\"round\">"), 2U);
  EXPECT_GE(count(page, "rounds 2, 3"), 1U);
}

TEST(ReportTest, AnIterationIsSplitInComputingSynchronizingAndWaiting) {
  const std::string page = make_report({run_of("ds-sync", 1, {0.8})}, {});
  // The mean, then its parts.
  EXPECT_EQ(count(page,
                  "<th scope=\"row\">ds-sync</th><td class=\"n\">100\u00a0ms</td><td class=\"n\">60\u00a0ms</td><td "
                  "class=\"n\">10\u00a0ms</td><td class=\"n\">30\u00a0ms</td>"),
            1U);
}

TEST(ReportTest, NothingIsFoldedAwayWithoutTheScript) {
  const std::string page = make_report(full_runs(), {});
  EXPECT_GE(count(page, "<details open"), 4U);
  EXPECT_EQ(count(page, "<details"), count(page, "<details open"));
}

TEST(ReportTest, SameRunsGiveTheSamePage) { EXPECT_TRUE(make_report(full_runs(), {}) == make_report(full_runs(), {})); }

TEST(ReportTest, NothingIsLoadedFromElsewhere) {
  const std::string page = make_report(full_runs(), {});
  EXPECT_EQ(count(page, "://"), count(page, "http://www.w3.org/2000/svg"));  // a name, not an address
  EXPECT_EQ(count(page, "url("), 0U);
  EXPECT_EQ(count(page, "@import"), 0U);
  EXPECT_EQ(count(page, "src="), 0U);
}

TEST(ReportTest, BareLogsGetAPageThatSaysWhatIsMissing) {
  TrainingRun bare;
  bare.file = "bare.jsonl";
  const std::string page = make_report({bare}, {});
  EXPECT_GE(count(page, "No run was evaluated."), 1U);
  EXPECT_GE(count(page, "No log has an iteration."), 1U);
  EXPECT_GE(count(page, "The logs say nothing about links"), 1U);
  EXPECT_GE(count(page, "The logs say nothing about the network"), 1U);
  EXPECT_GE(count(page, "without saying how the run ended"), 1U);
}

TEST(ReportTest, WhatLogsSayIsEscaped) {
  const std::string evil = "<img src=x onerror=alert(1)>\"'&";
  std::vector<TrainingRun> runs = full_runs();
  TrainingRun& run = runs[0];
  run.file = run.version = run.model = run.data = run.cause = run.method = run.date = evil;
  run.ending = Ending::kFailed;
  run.options = {{evil, evil}};
  run.plan = {{evil, evil}};
  run.command = {"dssync", evil};
  run.replanned = {{2, 1.0, evil}};
  run.other_events = {{evil, 1}};
  run.network->source = evil;
  for (NetworkNode& node : run.network->nodes) node.name += evil;
  for (PlannedRound& round : run.network->rounds) round.label = evil;
  for (auto& [name, link] : run.network->links) name = evil + name;
  run.traffic->bytes = {{evil + " up", 5e6}};
  const std::string page = make_report(runs, {});
  EXPECT_EQ(count(page, "<img"), 0U);
  EXPECT_EQ(count(page, "\"'&"), 0U);
  EXPECT_GE(count(page, "&lt;img src=x onerror=alert(1)&gt;"), 1U);
}

TEST(ReportTest, LongLogsMakeNoLongPage) {
  TrainingRun run = run_of("ds-sync", 1, {0.5});
  for (std::int64_t i = 5; i <= 200'000; ++i) {
    run.samples.push_back(
        {i, 1.0F / static_cast<float>(i), 0.1F + 0.01F * static_cast<float>(i % 7), 0.05F, 0.02F, 0.01F});
  }
  EXPECT_LT(make_report({run}, {}).size(), 120'000U);
}

TEST(LineChartTest, EveryPointIsInTheFrame) {
  LineChart chart;
  chart.id = "c";
  chart.series = {{"a", 0, false, {{0, 0.001}, {5, 100}, {10, 0}}, {}}};
  chart.y_may_be_logarithmic = true;
  const std::string svg = draw(chart);
  EXPECT_THAT(svg, HasSubstr(" log\""));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(LineChartTest, WithoutPointsThereIsNoChart) { EXPECT_THAT(draw(LineChart{}), IsEmpty()); }

TEST(LineChartTest, MarksThatWouldOverlapKeepTheirLines) {
  LineChart chart;
  chart.id = "c";
  chart.series = {{"a", 0, false, {{0, 1}, {100, 2}}, {}}};
  chart.marks = {{50, "replanned"}, {51, "replanned"}, {99, "replanned"}};
  const std::string svg = draw(chart);
  EXPECT_EQ(count(svg, "<path class=\"mark\""), 3U);
  EXPECT_EQ(count(svg, "<text class=\"mark\""), 2U);
}

TEST(LinkChartTest, AlikeLinksShareARow) {
  const Comparison comparison = compare({full_runs()[1]}, {});
  const std::vector<FoldedLinks> rows = fold_links(comparison.groups[0].links);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].label, "2 uplinks rack-a, rack-b, both ways");  // the busier ones first
  EXPECT_EQ(rows[1].label, "4 NICs a[0-1], b[0-1], both ways");
}

TEST(NetworkChartTest, LargeNetworksFoldTheHostsOfASwitch) {
  TrainingRun run = run_of("ds-sync", 1, {0.9});
  run.workers = 200;
  Network network;
  network.nodes = {{"core", false, -1, 0, {}}};
  for (int rack = 0; rack < 2; ++rack) {
    const int parent = static_cast<int>(network.nodes.size());
    network.nodes.push_back({"rack" + std::to_string(rack), false, 0, 1e6, {}});
    for (int host = 0; host < 100; ++host) {
      network.nodes.push_back(
          {"r" + std::to_string(rack) + "n" + std::to_string(host), true, parent, 1e7, {rack * 100 + host}});
    }
  }
  network.rounds = {{"racks", {{}, {}}}};
  for (int rank = 0; rank < 200; ++rank) network.rounds[0].groups[rank < 100 ? 0 : 1].push_back(rank);
  run.network = network;
  const std::vector<TrainingRun> runs{run};
  const Comparison comparison = compare(runs, {});
  const std::string tree = draw_network(comparison.groups[0], "n");
  EXPECT_EQ(count(tree, "class=\"host\""), 2U);
  EXPECT_THAT(tree, HasSubstr("100 hosts"));
  const std::string rounds = draw_rounds(comparison.groups[0], "r");
  EXPECT_EQ(count(rounds, "<circle"), 2U);
  EXPECT_THAT(rounds, HasSubstr(">B</text>"));
}

}  // namespace
}  // namespace dssync
