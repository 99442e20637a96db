// Inside of which regions gradients are averaged in every iteration, so that each of these is one replica: what users
// say, and the regions that follow. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "dssync/base/units.h"
#include "dssync/planner/planner.h"
#include "dssync/planner/schedule.h"
#include "dssync/topology/topology.h"

namespace dssync {

struct ExactInside {
  enum class Kind {
    kNowhere,  // every worker is a replica
    kLevel,    // the places of a level of the network (topology/levels.h)
    kAuto,     // hosts, and larger places where that costs no time
  };
  Kind kind = Kind::kNowhere;
  int level = 0;

  bool operator==(const ExactInside&) const = default;
};

// "none", "auto", "host", "rack", "site", or the number of a level; the other way, throws InputError with these.
std::string name_of(const ExactInside& exact);
ExactInside exact_inside_from_name(const std::string& name);

// Of an iteration that spends so long in the backward pass: what of its communication is not hidden there. Averages of
// gradients run during that pass, those of parameters after the step.
double visible_seconds(const Plan& plan, Seconds backward);

// What a plan is made for.
struct PlanRequest {
  double bytes = 0;
  double disagreement = 0.5;
  int group_limit = 0;
  bool published = false;
  ExactInside exact_inside{};
  Seconds backward{0};  // time of the backward pass, as far as it is known; for kAuto
  CodecChoice codecs{};
};

// The replicas that a plan should have, as Plan::replicas. Level by level, kAuto goes on as long as the best plan's
// iteration does not become longer. Throws InputError as Planner does.
std::vector<Group> choose_replicas(const Topology& topology, const PlanRequest& request);

}  // namespace dssync
