// Finds out the network between the workers of a world: makes the transfers that discovery.h asks for, with c10d.
// docs/adaptation.md explains how rates are measured. For one thread.
#pragma once

#include <functional>
#include <string>

#include "dssync/comm/world.h"
#include "dssync/topology/topology.h"

namespace dssync {

struct MeasuredNetwork {
  Topology topology;
  std::string file;  // the same as a topology file, with a comment that says what was measured
};

// Told on rank 0 how many sets of transfers were made, of at most how many. What it throws ends the measuring.
using DiscoveryWatcher = std::function<void(int done, int most)>;

// Collective; takes less than 20 seconds. Rank r is worker r of the topology, which is the same on all workers, bit by
// bit: rank 0 finds it and hands it out as a file. Throws PeerError where a worker is lost; before it throws, all
// process groups are given up.
MeasuredNetwork discover_network(World& world, const DiscoveryWatcher& watcher = nullptr);

}  // namespace dssync
