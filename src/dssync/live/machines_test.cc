#include "dssync/live/machines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dssync {
namespace {

using ::testing::ElementsAre;
using Host = DiscoveredHost;

TEST(MachinesTest, NeighboursOnOneMachineAreAHost) {
  const Machine gpu1{"gpu1", "10.0.0.1"};
  const Machine gpu2{"gpu2", "10.0.0.2"};
  EXPECT_THAT(hosts_on({gpu1, gpu1, gpu2}), ElementsAre(Host{"gpu1", 0, 2}, Host{"gpu2", 2, 1}));
}

TEST(MachinesTest, RanksThatAlternateAreHostsOfTheirOwn) {
  const Machine gpu1{"gpu1", "10.0.0.1"};
  const Machine gpu2{"gpu2", "10.0.0.2"};
  EXPECT_THAT(hosts_on({gpu1, gpu2, gpu1}),
              ElementsAre(Host{"worker0", 0, 1}, Host{"worker1", 1, 1}, Host{"worker2", 2, 1}));
}

TEST(MachinesTest, OnASingleMachineEveryWorkerIsAHost) {
  const Machine desk{"desk", "127.0.0.1"};
  EXPECT_THAT(hosts_on({desk, desk}), ElementsAre(Host{"worker0", 0, 1}, Host{"worker1", 1, 1}));
  EXPECT_THAT(hosts_on({desk}), ElementsAre(Host{"desk", 0, 1}));
}

TEST(MachinesTest, HostsOfATestbedShareAName) {
  const Machine first{"desk", "10.77.0.1"};
  const Machine second{"desk", "10.77.0.2"};
  EXPECT_THAT(hosts_on({first, first, second}), ElementsAre(Host{"worker0", 0, 2}, Host{"worker2", 2, 1}));
}

}  // namespace
}  // namespace dssync
