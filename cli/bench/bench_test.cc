#include "bench/bench.h"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/bench_report.h"
#include "dssync/base/error.h"
#include "dssync/topology/read.h"
#include "network/known_network.h"
#include "network/run_workers.h"

namespace dssync::cli {
namespace {

BenchCommand parsed(std::vector<std::string> arguments) {
  CLI::App app;
  BenchCommand command;
  add_bench_flags(app, command);
  std::reverse(arguments.begin(), arguments.end());
  app.parse(arguments);
  resolve_flags(app, command);
  return command;
}

std::string complaint(const std::vector<std::string>& arguments) {
  try {
    parsed(arguments);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(BenchFlagsTest, ReadsMethodsAndQuantities) {
  const BenchCommand command = parsed(
      {"--workers", "4", "--methods", "ps,ds-sync", "--bytes", "1MB", "--compute", "50ms", "--overlap", "layered"});
  EXPECT_EQ(command.benchmark.methods, (std::vector<BenchmarkedMethod>{{Method::kPs}, {Method::kDsSync}}));
  EXPECT_EQ(command.benchmark.bytes, 1'000'000);
  EXPECT_DOUBLE_EQ(command.benchmark.compute.count(), 0.05);
  EXPECT_EQ(command.benchmark.sync.overlap, Overlap::kLayered);
}

TEST(BenchFlagsTest, AMethodMayCarryItsCodec) {
  const BenchCommand command = parsed({"--methods", "bsp-ring:float32,ds-sync,ds-sync:int4", "--codec", "int8"});
  const std::vector<BenchmarkedMethod>& methods = command.benchmark.methods;
  ASSERT_EQ(methods.size(), 3U);
  EXPECT_EQ(name_of(methods[2]), "ds-sync:int4");
  EXPECT_EQ(options_of(methods[0], command.sync).codec_choice().codec, Codec::kFloat32);
  EXPECT_EQ(options_of(methods[1], command.sync).codec_choice().codec, Codec::kInt8);
  EXPECT_EQ(options_of(methods[2], command.sync).codec_choice().codec, Codec::kInt4);
  EXPECT_NE(complaint({"--methods", "ds-sync:int4,ds-sync:int4"}).find("twice"), std::string::npos);
  EXPECT_NE(complaint({"--methods", "ds-sync:int2"}).find("--methods: expected one of auto"), std::string::npos);
  EXPECT_NE(complaint({"--methods", "asp:int4"}).find("asp sends changes of parameters as float32"), std::string::npos);
}

TEST(BenchFlagsTest, NamesWhatIsWrong) {
  EXPECT_NE(complaint({"--methods", "bsp-ring,bsp"}).find("--methods: "), std::string::npos);
  EXPECT_NE(complaint({"--methods", "bsp-ring,bsp-ring"}).find("twice"), std::string::npos);
  EXPECT_NE(complaint({"--methods", ""}).find("--methods: expected"), std::string::npos);
  EXPECT_EQ(complaint({"--methods", "bsp-ring", "--staleness", "2"}),
            "--staleness belongs to --method ssp, but the method is bsp-ring");
  EXPECT_NE(complaint({"--repeats", "0"}).find("--repeats: expected"), std::string::npos);
}

TEST(BenchReportTest, SpreadIsMedianLeastAndMost) {
  const Spread odd = spread_of({3, 1, 2});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.least, 1);
  EXPECT_EQ(odd.most, 3);
  EXPECT_EQ(spread_of({4, 1, 2, 3}).median, 2.5);
}

BenchReport example(const Topology& topology) {
  MethodFigures method;
  method.method = {Method::kBspRing};
  method.iterations = 10;
  method.seconds = {2, 4, 3};
  method.predicted_seconds = 2;
  method.predicted.links.resize(topology.links().size());
  method.predicted.bottleneck = 0;
  method.bytes.assign(topology.links().size(), 30);
  method.bytes[1] = 60;
  return {"net.yaml", true, BenchmarkOptions{}, {method}};
}

TEST(BenchReportTest, JsonHasMedianPredictionAndShares) {
  const Topology topology = flat_network(2, Bandwidth{100});
  const auto json = nlohmann::json::parse(bench_as_json(example(topology), topology));
  const auto& method = json["methods"][0];
  EXPECT_EQ(method["name"], "bsp-ring");
  EXPECT_EQ(method["seconds_per_iteration"], 3.0);
  EXPECT_EQ(method["least_seconds"], 2.0);
  EXPECT_EQ(method["most_seconds"], 4.0);
  EXPECT_EQ(method["predicted_seconds"], 2.0);
  EXPECT_EQ(method["measured_over_predicted"], 1.5);
  // 30 bytes in 3 seconds over 100 bytes a second.
  EXPECT_DOUBLE_EQ(method["bottleneck_share"], 0.1);
  EXPECT_DOUBLE_EQ(method["links"][1]["share_of_capacity"], 0.2);
}

TEST(BenchReportTest, TextHasTheBusiestLink) {
  const Topology topology = flat_network(2, Bandwidth{100});
  const std::string text = bench_as_text(example(topology), topology, Style{});
  EXPECT_NE(text.find("bsp-ring"), std::string::npos);
  EXPECT_NE(text.find(topology.links()[1].name + " 20 %"), std::string::npos) << text;
  EXPECT_NE(text.find("1.50"), std::string::npos) << text;
  EXPECT_EQ(text.find("CPUs"), std::string::npos) << text;
  EXPECT_EQ(text.find("less busy"), std::string::npos) << text;
}

TEST(BenchReportTest, TextSaysWhereTheCpuWasBusy) {
  const Topology topology = flat_network(2, Bandwidth{100});
  BenchReport report = example(topology);
  report.methods[0].cpu_share = 0.97;
  const std::string text = bench_as_text(report, topology, Style{});
  EXPECT_NE(text.find("The CPUs were busy during bsp-ring (97 %)"), std::string::npos) << text;
}

TEST(BenchReportTest, TextOfALargeNetworkHasItsBusiestLinks) {
  const Topology topology = flat_network(40, Bandwidth{100});  // 80 links
  BenchReport report = example(topology);
  report.methods[0].bytes[79] = 90;
  const std::string text = bench_as_text(report, topology, Style{});
  EXPECT_NE(text.find("\nworker39 in "), std::string::npos) << text;
  EXPECT_EQ(text.find("\nworker39 out "), std::string::npos) << text;
  EXPECT_NE(text.find("and 16 links less busy"), std::string::npos) << text;
}

TEST(BenchFlagsTest, TheTimeoutFollowsThePrediction) {
  BenchCommand command = parsed({"--methods", "bsp-ring,ds-sync"});
  const auto timeout = [&](double bytes_per_second) {
    return timeout_of(command.network, {2, flat_network(2, Bandwidth{bytes_per_second}), {}},
                      [&](const Topology& topology) {
                        return predicted_iteration(command.sync, {Method::kBspRing, Method::kDsSync}, topology, 8e6,
                                                   Seconds(0));
                      })
        .count();
  };
  EXPECT_EQ(timeout(1e9), 60);
  // Each of the two sends 8 MB in an iteration: 80 s, and what filling a pipeline adds.
  EXPECT_GE(timeout(1e5), 800);
  EXPECT_LE(timeout(1e5), 1000);
  command.network.timeout = Seconds(5);
  EXPECT_EQ(timeout(1e5), 5);
}

}  // namespace
}  // namespace dssync::cli
