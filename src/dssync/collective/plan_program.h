// A plan made ready to be carried out by this worker: which slices when, chains with their process groups, and the
// numbers by which a monitor knows the stages. Immutable once made.
#pragma once

#include <memory>
#include <vector>

#include "dssync/collective/chain.h"
#include "dssync/collective/schedule_program.h"
#include "dssync/comm/world.h"
#include "dssync/monitor/stage_table.h"
#include "dssync/planner/planner.h"
#include "dssync/topology/topology.h"

namespace dssync {

struct PlanProgram {
  Plan plan;
  ScheduleProgram schedule;
  StageTable stages;
  std::vector<Chain> chains;  // by canonical round
};

// Lowers the plan's groups on `network` for a vector of so many bytes, makes and connects their process groups.
// Collective. Throws PeerError where a member doesn't come.
std::shared_ptr<const PlanProgram> make_plan_program(World& world, const Plan& plan, const Topology& network,
                                                     double bytes);

// The process groups of a chain, each once.
std::vector<Channel> channels_of(const Chain& chain);

}  // namespace dssync
