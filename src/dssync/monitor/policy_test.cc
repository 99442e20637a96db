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

AdaptiveRun::Options options_of(unsigned seed, double bytes = 8e6) {
  AdaptiveRun::Options options;
  options.simulation.seed = seed;
  options.simulation.noise = 0.05;
  options.simulation.lost = 0.01;
  options.bytes = bytes;
  return options;
}

void change(AdaptiveRun& run, const Topology& network) { run.simulation.change_network(run.simulation.now(), network); }

TEST(PolicyTest, Explore) {
  {
    AdaptiveRun run(two_racks(200), options_of(1));
    run.verbose = true;
    for (double time = 0; time < 120; time += 10) {
      run.simulation.change_network(time, two_racks(200));
      run.simulation.change_network(time + 5, two_racks(25));
    }
    run.run_until(120);
  }
}

TEST(PolicyTest, CoreIsCutAndComesBack) {
  for (const double core : {50.0, 100.0, 200.0}) {
    for (unsigned seed = 1; seed <= 5; ++seed) {
      const AdaptiveRun::Options options = options_of(seed);
      const double fast = AdaptiveRun::fresh_seconds(two_racks(core), options);
      const double slow = AdaptiveRun::fresh_seconds(two_racks(25), options);
      AdaptiveRun run(two_racks(core), options);
      run.iterations(12);
      change(run, two_racks(25));
      run.iterations(15);
      const double adapted = run.iterations(20);
      change(run, two_racks(core));
      run.iterations(40);
      const double back = run.iterations(20);
      printf(
          "core %.0f seed %u: slow %.3f adapted %.3f (%.2f), fast %.3f back %.3f (%.2f), changes %d, probes %.2f %%\n",
          core, seed, slow, adapted, adapted / slow, fast, back, back / fast, run.policy.changes(),
          100 * run.probe_seconds / run.simulation.now());
    }
  }
}

double mean_over_wave(const AdaptiveRun::Options& options, const Topology& planned, const Topology& on,
                      const Topology& off, double period, int* changes) {
  AdaptiveRun run(planned, options);
  for (double time = 0; time < 120; time += 2 * period) {
    run.simulation.change_network(time, off);
    run.simulation.change_network(time + period, on);
  }
  run.run_until(120);
  if (changes != nullptr) *changes = run.policy.changes();
  return run.simulation.now() / static_cast<double>(run.iteration);
}

TEST(PolicyTest, SquareWave) {
  for (const double core : {50.0, 200.0}) {
    for (const double cut : {12.5, 25.0}) {
      for (const double bytes : {1e6, 8e6}) {
        for (const double period : {2.0, 5.0, 10.0, 20.0}) {
          AdaptiveRun::Options options = options_of(1, bytes);
          int changes = 0;
          const Topology off = two_racks(core);
          const Topology on = two_racks(cut);
          const double adaptive = mean_over_wave(options, off, on, off, period, &changes);
          options.adapts = false;
          const double planned_off = mean_over_wave(options, off, on, off, period, nullptr);
          const double planned_on = mean_over_wave(options, on, on, off, period, nullptr);
          printf("core %.0f/%.1f bytes %.0f period %.0f: static %.3f %.3f adaptive %.3f (%.2f) changes %d\n", core, cut,
                 bytes, period, planned_off, planned_on, adaptive, adaptive / std::min(planned_off, planned_on),
                 changes);
        }
      }
    }
  }
}

}  // namespace
}  // namespace dssync
