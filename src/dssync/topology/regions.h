// The tree of regions: which workers sit behind a common bottleneck. It follows the switches and the hosts, with two
// changes. A place with a single part below it is no region of its own. And where the cables of one place differ in
// speed, its faster parts form a region inside it, so that a schedule can let the slow ones (a host with a slow NIC, a
// far rack) join more rarely.
#pragma once

#include <string>
#include <vector>

#include "dssync/topology/topology.h"

namespace dssync {

// A region's parts are its child regions and its loose workers. It has at least two, except the root of a network with
// one worker.
struct Region {
  std::string name;
  int parent = kNone;
  int depth = 0;
  std::vector<int> children;  // indices into the list of regions
  std::vector<int> loose;     // positions of the workers that are parts themselves
  std::vector<int> members;   // positions of all workers, ascending

  int parts() const { return static_cast<int>(children.size() + loose.size()); }
};

// Parents before children; the first one holds all workers.
std::vector<Region> find_regions(const Topology& topology);

}  // namespace dssync
