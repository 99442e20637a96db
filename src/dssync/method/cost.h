// What an iteration of each method should take, from the load that it puts on every link. Pure.
#pragma once

#include "dssync/base/units.h"
#include "dssync/method/options.h"
#include "dssync/method/overlap.h"
#include "dssync/planner/cost.h"
#include "dssync/planner/planner.h"
#include "dssync/topology/topology.h"

namespace dssync {

// What an average of ds-sync moves for each byte of the parameters, with an optimizer that remembers so many values of
// every parameter.
double volume_of_average(const SyncOptions& options, int states_per_parameter);

// Of communication alone, that inside exact regions included. `plan` is what ds-sync and local-sgd follow, null for the
// others (and where it is not known yet: then one ring through everyone, which no plan is slower than). asp and ssp
// move what ps moves, if nobody waits. `codec`: of gradients; a plan has its own.
Cost method_cost(Method method, const Topology& topology, double bytes, const Plan* plan,
                 const CodecChoice& codec = {});

// Of an iteration with so much computing: bsp and ps communicate during the backward pass, asp, ssp and ds-sync in line
// after it, ds-sync that combines during all of it, and layered ds-sync (also where the choice is left to it) from the
// backward pass until the next forward pass needs the result (overlap.h). `inside`: the part of the cost that exact
// regions have for their gradients, during the backward pass (Plan::inside).
double iteration_seconds(const SyncOptions& options, const Cost& cost, Seconds compute, const Cost& inside = {});

}  // namespace dssync
