// Two pictures of rounds, one column each: by worker for few workers, by level of the tree for many. Pure; thread-safe.
#pragma once

#include <vector>

#include "dssync/planner/schedule.h"
#include "dssync/topology/topology.h"
#include "text/matrix.h"
#include "text/style.h"

namespace dssync::cli {

// Rows are workers in the order of the tree, switch by switch; a cell is the letter of the worker's group. Among many
// workers, neighbours that are always together share a row. No rows where that would still take too many. The header is
// left empty.
Matrix worker_matrix(const std::vector<const Round*>& rounds, const Topology& topology, const Style& style);

// Rows are the levels of the tree where groups end, the root on top; a cell is the share of the workers whose groups
// reach so far. The header is left empty.
Matrix level_matrix(const std::vector<const Round*>& rounds, const Topology& topology, const Style& style);

}  // namespace dssync::cli
