// Who says how many workers there are.
#include "network/known_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"

namespace dssync::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kTwoRacks = std::string(DSSYNC_SOURCE_DIR) + "/examples/topologies/two-racks.yaml";

Assignment torchrun_of(int size) {
  Assignment assignment;
  assignment.size = size;
  assignment.launcher = "torchrun";
  return assignment;
}

std::string problem_of(const std::optional<std::string>& file, int workers,
                       const std::optional<Assignment>& assignment) {
  try {
    network_of(file, workers, {}, assignment);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(KnownNetworkTest, FlatNetworksHaveOneWorkerPerHost) {
  const Topology topology = flat_network(3, kFlatNic);
  EXPECT_EQ(topology.workers(), 3);
  EXPECT_EQ(topology.worker_name(2), "worker2");
  EXPECT_EQ(topology.link(topology.node(topology.host_at(0)).up).capacity, kFlatNic);
}

TEST(KnownNetworkTest, AnyoneMaySayTheNumber) {
  EXPECT_EQ(network_of(kTwoRacks, 0, {}, {}).topology.workers(), 8);
  EXPECT_EQ(network_of({}, 5, {}, {}).topology.workers(), 5);
  EXPECT_EQ(network_of({}, 0, {}, torchrun_of(6)).topology.workers(), 6);
}

TEST(KnownNetworkTest, AllMayAgree) {
  EXPECT_EQ(network_of(kTwoRacks, 8, {}, torchrun_of(8)).topology.workers(), 8);
  EXPECT_EQ(network_of({}, 4, {}, torchrun_of(4)).topology.workers(), 4);
}

TEST(KnownNetworkTest, TheRateOfNicsCanBeGiven) {
  const Topology topology = network_of({}, 2, {.nic = Bandwidth{5e6}, .uplink = {}}, {}).topology;
  EXPECT_EQ(topology.link(topology.node(topology.host_at(0)).up).capacity, Bandwidth{5e6});
}

TEST(KnownNetworkTest, DisagreementIsRefused) {
  EXPECT_THAT(problem_of(kTwoRacks, 4, {}),
              AllOf(HasSubstr("two-racks.yaml: has 8 workers"), HasSubstr("--workers is 4")));
  EXPECT_THAT(problem_of(kTwoRacks, 0, torchrun_of(2)),
              AllOf(HasSubstr("has 8 workers"), HasSubstr("torchrun started 2")));
  EXPECT_THAT(problem_of({}, 3, torchrun_of(2)), AllOf(HasSubstr("--workers is 3"), HasSubstr("torchrun started 2")));
}

TEST(KnownNetworkTest, SomebodyMustSayTheNumber) {
  EXPECT_THAT(problem_of({}, 0, {}), AllOf(HasSubstr("--topology"), HasSubstr("--workers"), HasSubstr("torchrun")));
}

}  // namespace
}  // namespace dssync::cli
