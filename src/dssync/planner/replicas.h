// Who holds the same values at all times. The workers of a replica average their gradients in every iteration, so a
// schedule treats them as one; without such regions every worker is a replica. Replicas are numbered in the order of
// the tree, and searches divide these numbers. Immutable; thread-safe.
#pragma once

#include <vector>

#include "dssync/planner/schedule.h"
#include "dssync/topology/regions.h"
#include "dssync/topology/topology.h"

namespace dssync {

class Replicas {
 public:
  // One for each group; none: every worker is one. Throws InputError unless every rank is in one of them, and each is a
  // worker or all workers below one place of the network.
  explicit Replicas(const Topology& topology, const std::vector<Group>& groups = {});

  int count() const { return static_cast<int>(ranks_.size()); }
  int workers() const { return static_cast<int>(number_of_.size()); }

  // Whether some have several workers.
  bool has_regions() const { return count() < workers(); }

  const std::vector<Group>& groups() const { return ranks_; }
  int number_of(Rank rank) const { return number_of_[static_cast<std::size_t>(rank)]; }

  // The workers of some replicas.
  Group ranks_of(const std::vector<int>& numbers) const;

  // How many a group of workers holds. REQUIRES: it is a union of replicas.
  int count_in(const Group& group) const;

  // The average of a group is that of its workers, though each replica sends its values once: they are multiplied by
  // `weight`, and the sum is divided by `divisor`.
  struct Weighing {
    int weight = 1;
    int divisor = 1;
  };
  // Of the rank's replica. REQUIRES: the group is a union of replicas, with this rank.
  Weighing weighing_of(const Group& group, Rank rank) const;

 private:
  std::vector<Group> ranks_;    // by number
  std::vector<int> number_of_;  // by rank
};

// The tree of regions with replicas in the place of workers: positions are numbers of replicas, and there are no
// regions inside of one.
std::vector<Region> find_regions(const Topology& topology, const Replicas& replicas);

}  // namespace dssync
