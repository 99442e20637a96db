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

TEST(MethodCostTest, SchedulesFollowTheirPlan) {
  const Topology topology = two_racks();
  Plan plan;
  plan.rounds = {{"racks", {{0, 1, 2, 3}, {4, 5, 6, 7}}}};
  // 2 * 3/4 of 8 bytes out of every NIC.
  EXPECT_DOUBLE_EQ(method_cost(Method::kDsSync, topology, 8, &plan).seconds_per_iteration, 3);
}

TEST(MethodCostTest, AveragesMoveStateWithTheParameters) {
  SyncOptions options;
  EXPECT_DOUBLE_EQ(volume_of_average(options, 0), 1);
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
  const auto with = [&](Method method, bool overlap, double compute) {
    SyncOptions options;
    options.method = method;
    options.overlap = overlap;
    return iteration_seconds(options, cost, Seconds(compute));
  };
  EXPECT_DOUBLE_EQ(with(Method::kBspRing, false, 3), 1 + 5);
  EXPECT_DOUBLE_EQ(with(Method::kBspRing, false, 30), 30);
  EXPECT_DOUBLE_EQ(with(Method::kSsp, false, 3), 8);
  EXPECT_DOUBLE_EQ(with(Method::kDsSync, false, 3), 8);
  EXPECT_DOUBLE_EQ(with(Method::kDsSync, true, 3), 5);
  EXPECT_DOUBLE_EQ(with(Method::kLocalSgd, true, 6), 6);
}

}  // namespace
}  // namespace dssync
