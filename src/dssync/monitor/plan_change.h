// A decision to follow another plan: to what, and why. Plain value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dssync/planner/planner.h"
#include "dssync/planner/stage_table.h"
#include "dssync/topology/topology.h"

namespace dssync {

struct PlanChange {
  Plan plan{};
  Topology network;  // to lower it on: the estimated one
  // The plan's stages on that network, to be carried out and watched. Null where only a report is wanted.
  std::shared_ptr<const StageTable> table{};
  std::int64_t iteration = 0;  // the first that follows it, counted from 0: the next one, until workers agree on one
  double seconds_before = 0;   // per iteration, expected of the plan in force on this network
  double seconds_after = 0;    // of the new one
  struct LinkChange {
    LinkId link = kNone;
    Bandwidth from{};  // as the plan in force assumed
    Bandwidth to{};
    Bandwidth others{};  // that others use, in bytes per second
  };
  std::vector<LinkChange> links{};
  std::string explanation{};  // one line for the log
};

}  // namespace dssync
