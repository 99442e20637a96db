// Predicted load per link as bars, the busiest first. Links of one kind with the same load share a row.
#pragma once

#include <string>

#include "dssync/planner/cost.h"
#include "dssync/topology/topology.h"
#include "text/style.h"

namespace dssync::cli {

// At most a dozen rows, whatever the network.
std::string draw_links(const Cost& cost, const Topology& topology, const Style& style);

}  // namespace dssync::cli
