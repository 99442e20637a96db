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
  for (const double from : {200., 50.}) {
    AdaptiveRun run(two_racks(from));
    run.verbose = true;
    run.iterations(12);
    run.simulation.change_network(run.simulation.now(), two_racks(25));
    run.iterations(30);
    run.simulation.change_network(run.simulation.now(), two_racks(from));
    run.iterations(50);
    run.simulation.change_network(run.simulation.now(), with_links(two_racks(from), "rack0-1", 50));
    run.iterations(30);
    run.simulation.change_network(run.simulation.now(), two_racks(from));
    run.iterations(50);
  }
}

}  // namespace
}  // namespace dssync
