#include "dssync/topology/levels.h"

#include <algorithm>

#include "dssync/base/index.h"

namespace dssync {

std::vector<int> levels_of(const Topology& topology) {
  std::vector<int> levels(topology.nodes().size(), 0);
  // Parents stand before their children.
  for (std::size_t id = levels.size(); id-- > 0;) {
    const Node& node = topology.nodes()[id];
    if (node.count == 0 || node.parent == kNone) continue;
    int& above = levels[index(node.parent)];
    above = std::max(above, levels[id] + 1);
  }
  return levels;
}

int top_level(const Topology& topology) { return levels_of(topology)[index(topology.root())]; }

std::vector<std::vector<Rank>> places_at(const Topology& topology, int level) {
  const std::vector<int> levels = levels_of(topology);
  std::vector<std::vector<Rank>> places;
  for (int position = 0; position < topology.workers();) {
    NodeId place = topology.host_at(position);
    for (NodeId above = place; above != kNone && levels[index(above)] <= level; above = topology.node(above).parent) {
      place = above;
    }
    std::vector<Rank>& ranks = places.emplace_back();
    for (const int end = position + topology.node(place).count; position < end; ++position) {
      ranks.push_back(topology.rank_at(position));
    }
    std::sort(ranks.begin(), ranks.end());
  }
  return places;
}

}  // namespace dssync
