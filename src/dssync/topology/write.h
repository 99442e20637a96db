// Writes a topology as a file that read_yaml_topology reads back as the same network. Pure; thread-safe.
#pragma once

#include <string>

#include "dssync/topology/topology.h"

namespace dssync {

// Names are folded to ranges where that keeps the order of the hosts. Links that differ by direction are written with
// the slower rate: a topology file has one rate for a cable. Rates and latencies are written so that they are read back
// unchanged to 12 digits.
std::string write_yaml_topology(const Topology& topology);

}  // namespace dssync
