// Paths through the tree of switches.
#include "dssync/topology/routes.h"

#include <algorithm>

namespace dssync {

NodeId meeting_point(const Topology& topology, NodeId a, NodeId b) {
  // A parent has the smaller id, so the larger of two different ids can't be the other's ancestor: climb from it.
  while (a != b) {
    (a > b ? a : b) = topology.node(std::max(a, b)).parent;
  }
  return a;
}

std::vector<LinkId> route(const Topology& topology, NodeId from_host, NodeId to_host) {
  const NodeId top = meeting_point(topology, from_host, to_host);
  std::vector<LinkId> links;
  for (NodeId node = from_host; node != top; node = topology.node(node).parent) {
    links.push_back(topology.node(node).up);
  }
  const auto turn = static_cast<std::ptrdiff_t>(links.size());
  for (NodeId node = to_host; node != top; node = topology.node(node).parent) {
    links.push_back(topology.node(node).down);
  }
  std::reverse(links.begin() + turn, links.end());
  return links;
}

Bandwidth cable_capacity(const Topology& topology, NodeId node) {
  const Node& end = topology.node(node);
  return std::min(topology.link(end.up).capacity, topology.link(end.down).capacity);
}

}  // namespace dssync
