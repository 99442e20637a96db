// Whole training runs on networks that change: what the plan is changed to, how often, and what it brings.
#include "dssync/monitor/policy.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/monitor/testing.h"
#include "dssync/planner/planner.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using testing::AdaptiveRun;
using testing::SimulationOptions;
using testing::two_racks;
using testing::with_links;

TEST(PolicyTest, Explore) {
  AdaptiveRun::Options options;
  options.simulation.noise = 0.05;
  options.policy.least_gain = 10;
  {
    std::vector<double> nics(8, 25e6);
    nics[2] = nics[5] = 12.5e6;
    const Topology topology = testing::hosts_with_nics(nics);
    options.simulation.seed = 3;
    AdaptiveRun run(topology, options);
    run.verbose = true;
    run.iterations(9);
    run.simulation.change_network(run.simulation.now(), with_links(topology, "h1 ", 25));
    run.iterations(18);
  }
  {
    const Topology topology = testing::racks(4, 4, 25e6, 12.5e6);
    options.simulation.seed = 5;
    AdaptiveRun run(topology, options);
    run.verbose = true;
    run.iterations(9);
    run.simulation.change_network(run.simulation.now(), with_links(topology, "rack0-1 ", 25));
    run.iterations(18);
    run.simulation.change_network(run.simulation.now(), topology);
    run.iterations(40);
  }
}

}  // namespace
}  // namespace dssync
