// Workers as threads measure loopback. What is found on networks with racks: tests/cli/test_discovery.py.
#include "dssync/live/discover_network.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/comm/testing.h"
#include "dssync/topology/write.h"

namespace dssync {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using testing::message_of;
using testing::run_ranks;
using testing::run_ranks_losing;

TEST(DiscoverNetworkTest, AllWorkersFindTheSameNetwork) {
  std::vector<std::string> files(3);
  std::vector<std::string> topologies(3);
  std::vector<std::pair<int, int>> steps;
  run_ranks(3, [&](World& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    const MeasuredNetwork found =
        discover_network(world, [&](int done, int most) { steps.emplace_back(done, most); });  // rank 0 alone
    files[rank] = found.file;
    topologies[rank] = write_yaml_topology(found.topology);
  });
  EXPECT_THAT(files, Each(files.front()));
  EXPECT_THAT(topologies, Each(topologies.front()));
  EXPECT_THAT(files.front(), HasSubstr("# 3 hosts, no uplink that limits them"));
  EXPECT_THAT(files.front(), HasSubstr(topologies.front()));
  EXPECT_THAT(steps, ::testing::ElementsAre(std::pair(0, 3), std::pair(1, 3), std::pair(2, 3), std::pair(3, 3)));
}

TEST(DiscoverNetworkTest, RatesAreThoseOfThisMachine) {
  run_ranks(2, [&](World& world) {
    const Topology topology = discover_network(world).topology;
    ASSERT_EQ(topology.workers(), 2);
    EXPECT_EQ(topology.worker_name(1), "worker1");
    const double rate = topology.link(topology.node(topology.host_at(0)).up).capacity.bytes_per_second;
    EXPECT_GT(rate, 5e6);
    EXPECT_LT(rate, 1e11);
  });
}

TEST(DiscoverNetworkTest, OneWorkerMeasuresNothing) {
  run_ranks(1, [&](World& world) {
    const MeasuredNetwork found = discover_network(world);
    EXPECT_EQ(found.topology.workers(), 1);
    EXPECT_THAT(found.file, HasSubstr("nothing was measured"));
  });
}

TEST(DiscoverNetworkTest, CanBeRepeated) {
  run_ranks(2, [&](World& world) {
    discover_network(world);
    EXPECT_EQ(discover_network(world).topology.workers(), 2);
  });
}

TEST(DiscoverNetworkTest, AWorkerThatFailsEndsItEverywhere) {
  run_ranks(5, [&](World& world) {
    const auto discover = [&] {
      discover_network(world, [](int done, int /*most*/) {
        if (done == 1) throw Error("ran away");
      });
    };
    if (world.rank() == 0) {
      EXPECT_EQ(message_of<Error>(discover), "ran away");
    } else {
      EXPECT_THAT(message_of<PeerError>(discover), HasSubstr("discovering the network: rank 0 failed: ran away"));
    }
  });
}

TEST(DiscoverNetworkTest, ALostWorkerIsNamedAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::string> messages =
      run_ranks_losing(2, "discovery 0", 3, [](World& world) { discover_network(world); });
  for (const std::size_t rank : {0u, 1u}) {
    EXPECT_THAT(messages[rank], HasSubstr("discovering the network: rank 2 failed: lost its data"));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << "the timeout is 60 s";
}

}  // namespace
}  // namespace dssync
