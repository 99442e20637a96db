// The search under a group limit. Whole regions may be too large to average at once; then their replicas are shuffled
// in grids, and regions meet through delegates. docs/planner.md lists the family that is searched. Not thread-safe: it
// remembers what it measured.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "dssync/planner/cost.h"
#include "dssync/planner/mixing.h"
#include "dssync/planner/nested_search.h"
#include "dssync/planner/replicas.h"
#include "dssync/topology/topology.h"

namespace dssync {

class LimitedSearch {
 public:
  // group_limit: so many replicas. REQUIRES: 2 <= group_limit. The replicas must outlive the search.
  LimitedSearch(const Topology& topology, const Replicas& replicas, double bytes, int group_limit, CostBook& costs);

  // The fastest schedule of the family with S <= disagreement, if there is one.
  std::optional<Found> best(double disagreement);

  // The smallest S in the family.
  double smallest_disagreement();

 private:
  // A cycle that keeps everyone busy. Idle rounds between its rounds make it cheaper and looser.
  struct Base {
    Schedule rounds;
    double busiest = 0;                  // seconds of the busiest link's time per iteration, interleaved
    double latency = 0;                  // per iteration, interleaved
    double in_turn = 0;                  // seconds per iteration with one shard
    double cycle_norm = 0;               // only where it is needed to estimate S
    std::map<int, double> disagreement;  // S by the number of idle rounds, as far as measured

    double share(int idle) const;  // of the rounds that are not idle
    bool is_interleaved(int idle) const;
    double seconds(int idle) const;  // per iteration
  };

  double disagreement_with(Base& base, int idle, double limit);
  int most_idle(Base& base, int least, double limit);
  Found realize(const Base& base, int idle) const;

  const Replicas& replicas_;
  std::vector<Base> bases_;
  std::optional<std::pair<double, const Base*>> smallest_;  // the smallest S, and whose it is
};

}  // namespace dssync
