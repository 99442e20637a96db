// The rounds of a cycle, drawn so that one sees who meets whom. Few workers: a letter for the group of each in each
// round. Many: how far the groups of each round reach in the network.
#pragma once

#include <string>

#include "dssync/planner/schedule.h"
#include "dssync/topology/topology.h"
#include "text/style.h"

namespace dssync::cli {

// REQUIRES: check_schedule(schedule, topology.workers()) passes.
std::string draw_rounds(const Schedule& schedule, const Topology& topology, const Style& style);

// How many rounds bring everyone into one group.
std::size_t meetings_of_all(const Schedule& schedule);

}  // namespace dssync::cli
