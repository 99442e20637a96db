// Networks for tests: regular ones by their measures, and random ones by a seed. Not installed.
#pragma once

#include <string>
#include <vector>

#include "dssync/topology/topology.h"

namespace dssync::testing {

// Parts of a network, for Topology::build.
Topology::SwitchSpec make_switch(std::string name, std::string parent, double uplink);
Topology::HostSpec make_host(std::string name, std::string at, double nic, int workers = 1);

// `hosts` hosts on one switch. Rates in bytes per second throughout.
Topology flat(int hosts, double nic = 1);

// One host for each of these, on one switch: h0, h1, ...
Topology hosts_with_nics(const std::vector<double>& nics);

// A core, `racks` switches below it, `hosts` on each.
Topology racks(int racks, int hosts, double nic, double uplink, int workers_per_host = 1);

// Sites of racks of hosts.
Topology three_levels(int sites, int racks, int hosts, int workers, double nic, double rack_uplink, double site_uplink);

// 2 to 4 levels of unequal regions, unequal NICs, some hosts with several workers, some latencies, ranks in no
// particular order; at most `most_workers` workers.
Topology random_tree(unsigned seed, int most_workers);

}  // namespace dssync::testing
