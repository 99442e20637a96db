// Networks for tests: regular ones by their measures, and random ones by a seed. Not installed.
#pragma once

#include <string>
#include <vector>

#include "dssync/topology/topology.h"

namespace dssync::testing {

// `hosts` hosts on one switch. Rates in bytes per second throughout.
Topology flat(int hosts, double nic = 1);

// A core, `racks` switches below it, `hosts` on each.
Topology racks(int racks, int hosts, double nic, double uplink, int workers_per_host = 1);

// Sites of racks of hosts.
Topology three_levels(int sites, int racks, int hosts, int workers, double nic, double rack_uplink, double site_uplink);

// 2 to 4 levels of unequal regions, unequal NICs, some hosts with several workers, some latencies, ranks in no
// particular order; at most `most_workers` workers.
Topology random_tree(unsigned seed, int most_workers);

}  // namespace dssync::testing
