#include "dssync/topology/routes.h"

#include <gtest/gtest.h>

#include "dssync/topology/testing.h"

namespace dssync {
namespace {

std::vector<std::string> names(const Topology& topology, const std::vector<LinkId>& links) {
  std::vector<std::string> result;
  for (const LinkId link : links) {
    result.push_back(topology.link(link).name);
  }
  return result;
}

NodeId node_called(const Topology& topology, const std::string& name) {
  for (std::size_t i = 0; i < topology.nodes().size(); ++i) {
    if (topology.nodes()[i].name == name) {
      return static_cast<NodeId>(i);
    }
  }
  return kNone;
}

TEST(RoutesTest, ClimbsToTheMeetingPointAndDescends) {
  const Topology topology = testing::three_levels(2, 2, 2, 1, 1, 1, 1);
  const NodeId here = node_called(topology, "site0-rack0-1");
  EXPECT_EQ(names(topology, route(topology, here, node_called(topology, "site0-rack0-0"))),
            (std::vector<std::string>{"site0-rack0-1 out", "site0-rack0-0 in"}));
  EXPECT_EQ(names(topology, route(topology, here, node_called(topology, "site1-rack1-0"))),
            (std::vector<std::string>{"site0-rack0-1 out", "site0-rack0 up", "site0 up", "site1 down",
                                      "site1-rack1 down", "site1-rack1-0 in"}));
}

TEST(RoutesTest, StaysInsideAHost) {
  const Topology topology = testing::racks(1, 2, 1, 1, 4);
  EXPECT_TRUE(route(topology, topology.host_at(0), topology.host_at(3)).empty());
  EXPECT_EQ(meeting_point(topology, topology.host_at(0), topology.host_at(3)), topology.host_at(0));
}

TEST(RoutesTest, CableIsAsFastAsItsSlowerDirection) {
  const Topology topology = testing::racks(2, 2, 8, 5);
  EXPECT_EQ(cable_capacity(topology, node_called(topology, "rack1")).bytes_per_second, 5);
  EXPECT_EQ(cable_capacity(topology, topology.host_at(0)).bytes_per_second, 8);
}

}  // namespace
}  // namespace dssync
