#include "dssync/method/cost.h"

#include <gtest/gtest.h>

#include "dssync/topology/testing.h"

namespace dssync {
namespace {

// Two racks of four: NICs of 4 bytes a second, uplinks of 1.
Topology two_racks() { return testing::racks(2, 4, 4, 1); }

double seconds_of(Method method, const Topology& topology) {
  return method_cost(method, topology, 8, nullptr).seconds_per_iteration;
}

TEST(MethodCostTest, ExactMethodsFollowTheirLoadOnTheUplinks) {
  // A ring crosses an uplink with 2 * 7/8 of the 8 bytes, the hierarchy with all of them, and servers on all workers
  // with half of four workers' pushes and half of four workers' pulls.
  EXPECT_DOUBLE_EQ(seconds_of(Method::kBspRing, two_racks()), 14);
  EXPECT_DOUBLE_EQ(seconds_of(Method::kBspHierarchical, two_racks()), 8);
  EXPECT_DOUBLE_EQ(seconds_of(Method::kPs, two_racks()), 32);
  EXPECT_DOUBLE_EQ(seconds_of(Method::kAsp, two_racks()), 32);
}

TEST(MethodCostTest, GradientsInACodecTakeFewerBytes) {
  const CodecChoice int4{Codec::kInt4, 1e9};
  const Cost cost = method_cost(Method::kBspHierarchical, two_racks(), 8, nullptr, int4);
  EXPECT_DOUBLE_EQ(cost.seconds_per_iteration, 8 * wire_share(Codec::kInt4));
  // Half of the vector's quarter goes out and the same comes in, three times each; a quarter is exchanged; a quarter is
  // encoded, and all four are decoded.
  EXPECT_NEAR(cost.coding_seconds, 8 / 1e9 * (1.5 + 0.75 + 1.25), 1e-15);
  // Nobody encodes inside a ring of eight: everyone sends to all.
  EXPECT_DOUBLE_EQ(method_cost(Method::kBspRing, two_racks(), 8, nullptr, int4).seconds_per_iteration,
                   method_cost(Method::kPs, two_racks(), 8, nullptr, int4).seconds_per_iteration);
  EXPECT_DOUBLE_EQ(method_cost(Method::kAsp, two_racks(), 8, nullptr, int4).seconds_per_iteration, 32);
}

TEST(MethodCostTest, SchedulesFollowTheirPlan) {
  const Topology topology = two_racks();
  Plan plan;
  plan.rounds = {{"racks", {{0, 1, 2, 3}, {4, 5, 6, 7}}}};
  // 2 * 3/4 of 8 bytes out of every NIC.
  EXPECT_DOUBLE_EQ(method_cost(Method::kDsSync, topology, 8, &plan).seconds_per_iteration, 3);
}

TEST(MethodCostTest, ExactRegionsPayForTheirGradients) {
  const Topology topology = two_racks();
  Plan plan = Planner(topology, 8, 0, {{0, 1, 2, 3}, {4, 5, 6, 7}}).require(0);
  // 3 s inside the racks, as above, and the 8 bytes over each uplink.
  const Cost cost = method_cost(Method::kDsSync, topology, 8, &plan);
  EXPECT_DOUBLE_EQ(cost.seconds_per_iteration, 3 + 8);
  EXPECT_DOUBLE_EQ(cost.links[static_cast<std::size_t>(topology.node(topology.host_at(0)).up)].bytes_per_iteration,
                   12 + 8);
}

TEST(MethodCostTest, AveragesMoveStateWithTheParameters) {
  SyncOptions options;
  EXPECT_DOUBLE_EQ(volume_of_average(options, 0), 1);
  EXPECT_DOUBLE_EQ(volume_of_average(options, 1), 1.125) << "momentum rotates";
  EXPECT_DOUBLE_EQ(volume_of_average(options, 2), 1) << "Adam's is inferred";
  options.state = StateTreatment::kRotating;
  EXPECT_DOUBLE_EQ(volume_of_average(options, 2), 1.25);
  options.state = StateTreatment::kAveraged;
  EXPECT_DOUBLE_EQ(volume_of_average(options, 2), 3);
  options.state = StateTreatment::kLocal;
  EXPECT_DOUBLE_EQ(volume_of_average(options, 2), 1);
  options = {.method = Method::kBspRing};
  EXPECT_DOUBLE_EQ(volume_of_average(options, 1), 1);
}

TEST(MethodCostTest, ComputingHidesWhatTheMethodOverlaps) {
  Cost cost;
  cost.seconds_per_iteration = 5;
  const auto with = [&](Method method, Overlap overlap, double compute) {
    SyncOptions options;
    options.method = method;
    options.overlap = overlap;
    return iteration_seconds(options, cost, Seconds(compute));
  };
  EXPECT_DOUBLE_EQ(with(Method::kBspRing, Overlap::kInLine, 3), 1 + 5);
  EXPECT_DOUBLE_EQ(with(Method::kBspRing, Overlap::kInLine, 30), 30);
  EXPECT_DOUBLE_EQ(with(Method::kSsp, Overlap::kInLine, 3), 8);
  EXPECT_DOUBLE_EQ(with(Method::kDsSync, Overlap::kInLine, 3), 8);
  EXPECT_DOUBLE_EQ(with(Method::kDsSync, Overlap::kCombine, 3), 5);
  EXPECT_DOUBLE_EQ(with(Method::kLocalSgd, Overlap::kCombine, 6), 6);
  // An eighth of the 5 seconds is left after the backward pass.
  EXPECT_DOUBLE_EQ(with(Method::kDsSync, Overlap::kLayered, 30), 30 + 5.0 / 8);
}

// Three seconds of gradients: hidden by a backward pass of four, one visible behind one of two.
TEST(MethodCostTest, GradientsInsideHideInTheBackwardPass) {
  Cost cost;
  cost.seconds_per_iteration = 5 + 3;
  Cost inside;
  inside.seconds_per_iteration = 3;
  SyncOptions options;
  options.overlap = Overlap::kInLine;
  EXPECT_DOUBLE_EQ(iteration_seconds(options, cost, Seconds(6), inside), 6 + 5);
  EXPECT_DOUBLE_EQ(iteration_seconds(options, cost, Seconds(3), inside), 1 + 3 + 5);
  options.overlap = Overlap::kCombine;
  EXPECT_DOUBLE_EQ(iteration_seconds(options, cost, Seconds(3), inside), 3 + 5);
  EXPECT_DOUBLE_EQ(iteration_seconds(options, cost, Seconds(9), inside), 9);
  // The steps of a region wait for all of its gradients; the next forward pass hides some of what follows.
  options.overlap = Overlap::kLayered;
  EXPECT_DOUBLE_EQ(iteration_seconds(options, cost, Seconds(6), inside), 6 + 5 - 2);
}

}  // namespace
}  // namespace dssync
