// The search without a group limit: every region of the tree gets a cadence, and a round averages the outermost regions
// whose turn it is. docs/planner.md explains it. Not thread-safe.
#pragma once

#include <memory>
#include <optional>

#include "dssync/planner/cost.h"
#include "dssync/planner/replicas.h"
#include "dssync/planner/schedule.h"
#include "dssync/topology/topology.h"

namespace dssync {

// By so much S may exceed its limit, and a load what is allowed of it: both are sums of rounded numbers.
inline constexpr double kSearchTolerance = 1e-9;

struct Found {
  Schedule rounds;
  int shards = 1;
};

class NestedSearch {
 public:
  // The topology, the replicas and the book, which is of both, must outlive the search.
  NestedSearch(const Topology& topology, const Replicas& replicas, double bytes, CostBook& costs);
  ~NestedSearch();

  // The fastest schedule with S <= disagreement. One always exists: everyone averages in every round. Takes less time
  // where only one length of the cycle is to be tried: nothing where none of that length is within the limit.
  // REQUIRES: disagreement >= 0.
  Found best(double disagreement);
  std::optional<Found> best_of_length(double disagreement, int length);

 private:
  class Model;
  std::unique_ptr<Model> model_;
};

}  // namespace dssync
