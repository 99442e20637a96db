// What is written is read back as the same network.
#include "dssync/topology/write.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/topology/read.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

void expect_same(const Topology& read, const Topology& written) {
  ASSERT_EQ(read.nodes().size(), written.nodes().size());
  for (std::size_t id = 0; id < read.nodes().size(); ++id) {
    EXPECT_EQ(read.nodes()[id].name, written.nodes()[id].name);
    EXPECT_EQ(read.nodes()[id].parent, written.nodes()[id].parent);
    EXPECT_EQ(read.nodes()[id].kind, written.nodes()[id].kind);
  }
  for (std::size_t link = 0; link < read.links().size(); ++link) {
    EXPECT_EQ(read.links()[link].name, written.links()[link].name);
    EXPECT_EQ(read.links()[link].capacity, written.links()[link].capacity);
    EXPECT_EQ(read.links()[link].latency, written.links()[link].latency);
  }
  for (Rank rank = 0; rank < written.workers(); ++rank) EXPECT_EQ(read.worker_name(rank), written.worker_name(rank));
}

Topology read_back(const Topology& topology) {
  return read_yaml_topology(write_yaml_topology(topology), "written").topology;
}

TEST(WriteTest, FoldsNamesAndChoosesUnits) {
  const Topology topology =
      read_yaml_topology(
          "defaults: {nic: 200Mbps}\n"
          "switches: [{name: core}, {name: rack-a, parent: core, uplink: 1.5Gbps, latency: 50us}]\n"
          "hosts: [{name: \"a[0-3]\", switch: rack-a}, {name: b, switch: core, workers: 2}]\n",
          "test")
          .topology;
  EXPECT_EQ(write_yaml_topology(topology),
            "switches:\n"
            "  - {name: \"core\"}\n"
            "  - {name: \"rack-a\", parent: \"core\", uplink: 1.5Gbps, latency: 50us}\n"
            "hosts:\n"
            "  - {name: \"a[0-3]\", switch: \"rack-a\", nic: 200Mbps}\n"
            "  - {name: \"b\", switch: \"core\", nic: 200Mbps, workers: 2}\n");
}

TEST(WriteTest, ReadsBackTheSame) {
  expect_same(read_back(testing::flat(7, 1.0 / 3)), testing::flat(7, 1.0 / 3));
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Topology topology = testing::random_tree(seed, 40);
    SCOPED_TRACE(seed);
    expect_same(read_back(topology), topology);
  }
}

TEST(WriteTest, KeepsTheOrderOfHosts) {
  const Topology topology = Topology::build(
      {testing::make_switch("s", "", 0)},
      {testing::make_host("h2", "s", 1), testing::make_host("h0", "s", 1), testing::make_host("h1", "s", 1)}, "test");
  expect_same(read_back(topology), topology);
}

TEST(WriteTest, WritesStrangeNames) {
  const std::string name = "a\"b\\c:#";
  const Topology topology =
      Topology::build({testing::make_switch(name, "", 0)}, {testing::make_host("{x}", name, 1)}, "test");
  expect_same(read_back(topology), topology);
  const Topology brackets =
      Topology::build({testing::make_switch("s", "", 0)}, {testing::make_host("h[0]", "s", 1)}, "test");
  EXPECT_THROW(write_yaml_topology(brackets), Error);
}

TEST(WriteTest, WritesTheSlowerDirection) {
  const Topology topology = testing::flat(1, 4e6).with_capacities({{4e6}, {1e6}});
  EXPECT_THAT(write_yaml_topology(topology), ::testing::HasSubstr("nic: 8Mbps"));
}

}  // namespace
}  // namespace dssync
