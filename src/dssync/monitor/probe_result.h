// What the probes of one iteration tell about links. Internal to the monitor. Pure.
#pragma once

#include <vector>

#include "dssync/monitor/sample.h"
#include "dssync/topology/topology.h"

namespace dssync {

// By link, in bytes per second: what they prove, in the best of their turns; 0: nothing.
std::vector<double> proven_by_probes(const std::vector<ProbeSample>& probes, const Topology& topology);

// A transfer that brought, in the best of its turns, less than 1 / `factor` of what its path should allow.
struct SlowTransfer {
  struct Crossing {
    LinkId link = kNone;
    double capacity = 0;  // the most that it can have if it is what held up the transfer, in bytes per second
  };
  std::vector<Crossing> path;
};

// `network` has the capacities as assumed.
std::vector<SlowTransfer> slow_transfers(const std::vector<ProbeSample>& probes, const Topology& network,
                                         double factor);

}  // namespace dssync
