// A plan made ready to be carried out by this worker: which slices when, chains with their process groups, and the
// numbers by which a monitor knows the stages. Immutable once made.
#pragma once

#include <memory>
#include <vector>

#include "dssync/collective/chain.h"
#include "dssync/collective/schedule_program.h"
#include "dssync/comm/world.h"
#include "dssync/planner/planner.h"
#include "dssync/planner/stage_table.h"
#include "dssync/topology/topology.h"

namespace dssync {

struct PlanProgram {
  Plan plan;
  ScheduleProgram schedule;
  std::shared_ptr<const StageTable> table;
  std::vector<Chain> chains;  // by canonical round
};

// Makes and connects the process groups for the stages of the table, which is the plan's. Collective. Throws PeerError
// where a member doesn't come.
std::shared_ptr<const PlanProgram> make_plan_program(World& world, const Plan& plan,
                                                     std::shared_ptr<const StageTable> table);

// Likewise, with the plan's groups lowered on `network` for a vector of so many bytes. Throws Error unless the plan
// divides the workers of this world.
std::shared_ptr<const PlanProgram> make_plan_program(World& world, const Plan& plan, const Topology& network,
                                                     double bytes);

// The process groups of a chain, each once.
std::vector<Channel> channels_of(const Chain& chain);

}  // namespace dssync
