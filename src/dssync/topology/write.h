// Writes a topology as a file that read_yaml_topology reads back as the same network. Pure; thread-safe.
#pragma once

#include <string>

#include "dssync/topology/topology.h"

namespace dssync {

// Names are folded to ranges where that keeps the order of the hosts. A cable whose links differ is written with the
// slower rate, for a file has one rate for both. Rates and latencies are read back bit by bit. Throws Error where a
// name has a bracket, which the reader would take for a range.
std::string write_yaml_topology(const Topology& topology);

}  // namespace dssync
