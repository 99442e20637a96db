#include "dssync/monitor/cables.h"

#include <algorithm>

namespace dssync {

Cables::Cables(const Topology& topology) : cables_(topology.links().size() / 2) {
  for (const Node& node : topology.nodes()) {
    if (node.up == kNone) continue;
    Cable& cable = at(node.up);
    cable.workers = std::min(node.count, topology.workers() - node.count);
    cable.series = node.up / 2;
    const Node& parent = topology.node(node.parent);
    if (parent.up != kNone && parent.count == node.count) cable.series = at(parent.up).series;
    if (parent.up != kNone) continue;
    for (const NodeId sibling : parent.children) {
      const Node& other = topology.node(sibling);
      const bool first = other.up < node.up && other.count > 0;
      if (first && other.count + node.count == parent.count) cable.series = at(other.up).series;
    }
  }
}

}  // namespace dssync
