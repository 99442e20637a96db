// Levels of the network: hosts (0), what stands above hosts alone (1, racks), what stands above those (2, sites), and
// so on up to the root. Pure; thread-safe.
#pragma once

#include <vector>

#include "dssync/topology/topology.h"

namespace dssync {

// The root's level. A switch is one level above the highest place with workers below it, so a host that is cabled to
// the root is a place of level 0 beside racks.
int top_level(const Topology& topology);

// By NodeId. 0 for places without workers.
std::vector<int> levels_of(const Topology& topology);

// All workers, by the outermost place of at most this level that they sit in: in the order of the tree, ranks
// ascending. REQUIRES: level >= 0.
std::vector<std::vector<Rank>> places_at(const Topology& topology, int level);

}  // namespace dssync
