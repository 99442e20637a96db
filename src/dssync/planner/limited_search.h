// The search under a group limit. Whole regions may be too large to average at once; then their workers are shuffled in
// grids, and regions meet through delegates. docs/planner.md lists the family that is searched. Not thread-safe: it
// remembers what it measured.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "dssync/planner/mixing.h"
#include "dssync/planner/nested_search.h"
#include "dssync/topology/topology.h"

namespace dssync {

class LimitedSearch {
 public:
  // REQUIRES: 2 <= group_limit. The topology must outlive the search.
  LimitedSearch(const Topology& topology, double bytes, int group_limit);

  // The fastest schedule of the family with S <= disagreement, if there is one.
  std::optional<Found> best(double disagreement);

  // The smallest S in the family.
  double smallest_disagreement();

 private:
  // A cycle that keeps everyone busy. Idle rounds between its rounds make it cheaper and looser.
  struct Base {
    Schedule rounds;
    double seconds = 0;                  // per iteration, interleaved, without idle rounds
    std::map<int, double> disagreement;  // S by the number of idle rounds, as far as measured
  };

  double disagreement_with(Base& base, int idle, double limit);
  int most_idle(Base& base, int least, double limit);

  const Topology& topology_;
  std::vector<Base> bases_;
};

}  // namespace dssync
