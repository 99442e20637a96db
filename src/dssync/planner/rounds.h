// Rounds in terms of ranks, made from groups of positions. Used by the searches.
#pragma once

#include <string>
#include <vector>

#include "dssync/planner/grid.h"
#include "dssync/planner/schedule.h"
#include "dssync/topology/topology.h"

namespace dssync {

Group ranks_at(const std::vector<int>& positions, const Topology& topology);

// A division of parts as a division of the positions in them.
Division union_of(const Division& division, const std::vector<std::vector<int>>& parts);

// Collects the groups of one round and says in its label what they are.
class RoundBuilder {
 public:
  explicit RoundBuilder(const Topology& topology) : topology_(topology) {}

  // Groups of positions inside the place called `where`. REQUIRES: disjoint from all groups added before.
  void add(const Division& groups, const std::string& where);

  // Workers that were not added stay alone.
  Round finish();

 private:
  const Topology& topology_;
  std::vector<Group> groups_;
  std::vector<std::pair<std::string, std::vector<std::string>>> places_;  // what happens, and where
};

// A round of groups of positions all over the network.
Round make_round(const Division& groups, const Topology& topology);

}  // namespace dssync
