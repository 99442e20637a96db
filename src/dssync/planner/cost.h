// What a schedule costs on a network: the load of every link, and the time of an iteration that follows. Pure;
// thread-safe.
//
// An iteration takes as long as its busiest link (bytes / capacity, both directions apart) plus the latency of its
// longest chain of steps. With T shards every iteration touches all rounds, so a link's load is its mean over the cycle
// instead of its peak. That is what links can do at best, and what plans are compared by; apart from it a cost says
// what filling and draining the pipeline adds where averages go through several phases.
#pragma once

#include <utility>
#include <vector>

#include "dssync/planner/schedule.h"
#include "dssync/planner/stages.h"
#include "dssync/topology/topology.h"

namespace dssync {

// The bytes that one average of one group puts on each link it uses, and the latency of its steps.
struct GroupLoad {
  std::vector<std::pair<LinkId, double>> bytes;  // ascending links
  Seconds latency{0};

  // The busiest link's time plus latency.
  Seconds duration(const Topology& topology) const;
};

GroupLoad load_of(const Lowering& lowering, const Topology& topology, double bytes);

struct LinkUse {
  double bytes_per_iteration = 0;
  double seconds = 0;
};

// Whoever carries out an average of several phases cuts an iteration's averages into about so many pieces, and has two
// of them under way in a phase, so that no link waits for the next one.
inline constexpr double kPiecesPerIteration = 12;
inline constexpr double kPiecesPerPhase = 2;

struct Cost {
  double seconds_per_iteration = 0;
  double latency_seconds = 0;   // the part of it that is latency
  double pipeline_seconds = 0;  // not a part of it: until the first piece has reached its slowest phase, and from there
  LinkId bottleneck = kNone;    // the busiest link; kNone where no link is used
  std::vector<LinkUse> links;   // by LinkId, means over the cycle
};

// REQUIRES: schedule not empty; 1 <= shards.
Cost cost_of(const Schedule& schedule, int shards, const Topology& topology, double bytes);

// Of one average per iteration that is carried out like this.
Cost cost_of(const Lowering& lowering, const Topology& topology, double bytes);

// One exact average of everyone per iteration.
double ring_seconds(const Topology& topology, double bytes);
double hierarchical_seconds(const Topology& topology, double bytes);

}  // namespace dssync
