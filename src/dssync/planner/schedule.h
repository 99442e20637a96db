// Who averages with whom: groups, rounds and the cyclic schedule. Plain values.
#pragma once

#include <string>
#include <vector>

#include "dssync/topology/topology.h"

namespace dssync {

using Group = std::vector<Rank>;  // ascending; a group of one keeps its local step

// One division of the workers. Invariant: every rank is in exactly one group; groups stand in the order of their first
// rank.
struct Round {
  std::string label;  // for people: "all", "whole rack", "pairs in rack-a", "nobody"
  std::vector<Group> groups;

  bool operator==(const Round&) const = default;
};

using Schedule = std::vector<Round>;  // iteration t, shard s uses round (t + s) mod size()

// Throws Error, naming the round and the rank, unless every round divides ranks 0..workers-1.
void check_schedule(const Schedule& schedule, int workers);

}  // namespace dssync
