// What codecs add to S: docs/mixing.md has the arithmetic. Pure; thread-safe.
#pragma once

#include <functional>

#include "dssync/planner/replicas.h"
#include "dssync/planner/schedule.h"
#include "dssync/planner/stages.h"

namespace dssync {

// Whether everyone averages in some round. What that leaves is the reference: all workers have it, bit by bit, and
// values travel as differences to it.
bool has_reference(const Schedule& schedule);

// How a group of the schedule is averaged. The reference must stay valid.
using LoweringOf = std::function<const Lowering&(const Group& group)>;

// The disagreement that rounding adds to S in the long run, with unit noise on every worker. `steady`: the schedule's
// S, by which the result is scaled where rounds don't commute. Groups are unions of replicas. REQUIRES: as for
// measure_mixing.
double codec_disagreement(const Schedule& schedule, const Replicas& replicas, double steady,
                          const LoweringOf& lowering_of);

}  // namespace dssync
