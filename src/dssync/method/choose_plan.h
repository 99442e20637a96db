// What ds-sync follows on a network: when its averages run, and the fastest plan whose total S is within the user's
// limit. Pure; thread-safe.
#pragma once

#include "dssync/method/options.h"
#include "dssync/planner/planner.h"
#include "dssync/topology/topology.h"

namespace dssync {

struct PlanChoice {
  Overlap overlap = Overlap::kInLine;
  Plan plan;
};

// What averages add to the plan's own S: those that combine miss the latest step.
double missed_disagreement(Overlap overlap, const Plan& plan, int workers);

// The S that replicas really have: of the schedule, of its codecs, and of the step that averages may miss.
double total_disagreement(Overlap overlap, const Plan& plan, int workers);

// For a vector of so many bytes. Where the mode is left to choose, and options.compute says how long an iteration
// computes, the fastest mode is taken whose total S is within the limit; without it, the one that adds nothing to S.
// `can_step_early` as for resolve(). Throws InputError where no plan is within the limit.
PlanChoice choose_plan(const Topology& topology, double bytes, const SyncOptions& options, bool can_step_early);

}  // namespace dssync
