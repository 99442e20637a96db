// The network as a tree with capacities, for people. Siblings that are alike share a line, so that a large network
// stays short.
#pragma once

#include <string>

#include "dssync/topology/topology.h"
#include "text/style.h"

namespace dssync::cli {

// At most about fifty lines, whatever the network.
std::string draw_network(const Topology& topology, const Style& style);

}  // namespace dssync::cli
