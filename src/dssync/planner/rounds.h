// Rounds in terms of ranks, made from groups of replicas. Used by the searches.
#pragma once

#include <string>
#include <vector>

#include "dssync/planner/grid.h"
#include "dssync/planner/replicas.h"
#include "dssync/planner/schedule.h"

namespace dssync {

// A division of parts as a division of what is in them.
Division union_of(const Division& division, const std::vector<std::vector<int>>& parts);

// Collects the groups of one round and says in its label what they are.
class RoundBuilder {
 public:
  // They must outlive the builder.
  explicit RoundBuilder(const Replicas& replicas) : replicas_(replicas) {}

  // Groups of replicas inside the place called `where`. REQUIRES: disjoint from all groups added before.
  void add(const Division& groups, const std::string& where);

  // Replicas that were not added stay alone.
  Round finish();

 private:
  const Replicas& replicas_;
  std::vector<Group> groups_;
  std::vector<std::pair<std::string, std::vector<std::string>>> places_;  // what happens, and where
};

// A round of groups of replicas all over the network.
Round make_round(const Division& groups, const Replicas& replicas);

}  // namespace dssync
