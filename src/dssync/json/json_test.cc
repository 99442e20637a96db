#include "dssync/json/json.h"

#include <gtest/gtest.h>

#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using testing::make_host;
using testing::make_switch;

// Two racks; ranks follow the hosts of the file, so rack a has ranks 0 and 2.
Topology two_racks() {
  return Topology::build({make_switch("core", "", 0), make_switch("a", "core", 5e6), make_switch("b", "core", 5e6)},
                         {make_host("a0", "a", 1e6), make_host("b0", "b", 1e6), make_host("a1", "a", 2e6)}, "test");
}

TEST(JsonTest, NodesNameTheirParentsSpeedsAndRanks) {
  const Json nodes = json_of(two_racks());
  ASSERT_EQ(nodes.size(), 6U);
  EXPECT_EQ(nodes[0], Json::parse(R"({"name": "core", "kind": "switch", "parent": null, "bytes_per_second": null,
                                      "latency_seconds": 0.0, "ranks": []})"));
  const Json expected = Json::parse(R"({"name": "a1", "kind": "host", "parent": "a", "bytes_per_second": 2e6,
                                        "latency_seconds": 0.0, "ranks": [2]})");
  EXPECT_NE(std::find(nodes.begin(), nodes.end(), expected), nodes.end()) << nodes.dump(2);
}

TEST(JsonTest, CostNamesEveryLink) {
  const Topology topology = two_racks();
  const Json cost = json_of(cost_of({{"a", {{0, 2}, {1}}}}, 1, topology, 4e6), topology);
  // A pair exchanges half of the vector and gives the sum of the other half back: each sends 4 MB.
  EXPECT_EQ(cost["bottleneck"], "a0 out");
  EXPECT_DOUBLE_EQ(cost["seconds_per_iteration"], 4.0);
  EXPECT_EQ(cost["links"].size(), topology.links().size());
}

TEST(JsonTest, PlansNameTheirReplicasWhereTheseHaveSeveralWorkers) {
  Plan plan;
  plan.rounds = {{"all", {{0, 1, 2, 3}}}};
  EXPECT_FALSE(json_of(plan).contains("replicas"));
  plan.replicas = {{0, 1}, {2, 3}};
  EXPECT_EQ(json_of(plan)["replicas"], Json::parse("[[0, 1], [2, 3]]"));
}

TEST(JsonTest, PlansNameTheirCodecsWhereValuesTravelInAny) {
  Plan plan;
  plan.rounds = {{"all", {{0, 1, 2, 3}}}};
  EXPECT_FALSE(json_of(plan).contains("codecs"));
  plan.codecs = Codecs({Codec::kFloat32, Codec::kInt8, Codec::kInt4});
  plan.codec_disagreement = 0.25;
  EXPECT_EQ(json_of(plan)["codecs"], Json::parse(R"(["float32", "int8", "int4"])"));
  EXPECT_EQ(json_of(plan)["codec_disagreement"], 0.25);
}

}  // namespace
}  // namespace dssync
