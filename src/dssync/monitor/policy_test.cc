// Whole training runs on networks that change: what the plan is changed to, how often, and what it brings.
#include "dssync/monitor/policy.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
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

TEST(PolicyTest, CoreIsCutAndComesBack) {
  for (const double core : {50.0, 100.0, 200.0}) {
    for (unsigned seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE("core " + std::to_string(core) + ", seed " + std::to_string(seed));
      const AdaptiveRun::Options options = options_of(seed);
      AdaptiveRun run(two_racks(core), options);
      run.iterations(12);
      change(run, two_racks(25));
      run.iterations(15);
      EXPECT_EQ(run.policy.changes(), 1);
      const double adapted = run.iterations(20) / AdaptiveRun::fresh_seconds(two_racks(25), options);
      EXPECT_LE(adapted, 1.15);
      change(run, two_racks(core));
      run.iterations(40);
      const double back = run.iterations(20) / AdaptiveRun::fresh_seconds(two_racks(core), options);
      EXPECT_LE(back, 1.15);
      EXPECT_EQ(run.policy.changes(), 2);
      std::printf("core %g, seed %u: %.2f and %.2f times a fresh run, probes %.2f %%\n", core, seed, adapted, back,
                  100 * run.probe_seconds / run.simulation.now());
      EXPECT_LE(run.probe_seconds, 0.015 * run.simulation.now());
    }
  }
}

TEST(PolicyTest, SaysWhatItSawAndWhatItExpects) {
  AdaptiveRun run(two_racks(50), options_of(1));
  run.iterations(12);
  change(run, two_racks(25));
  run.iterations(15);
  ASSERT_EQ(run.changes.size(), 1);
  const PlanChange& first = run.changes.front();
  EXPECT_EQ(first.links.size(), 4);
  EXPECT_GT(first.seconds_before, 1.1 * first.seconds_after);
  EXPECT_THAT(first.explanation, ::testing::StartsWith("rack0 up 50 Mbit/s -> 2"));
  EXPECT_THAT(first.explanation, ::testing::HasSubstr("; new plan (all"));
  EXPECT_THAT(first.explanation, ::testing::HasSubstr(" ms instead of "));
}

TEST(PolicyTest, OneNicIsContended) {
  for (const double core : {50.0, 200.0}) {
    for (unsigned seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE("core " + std::to_string(core) + ", seed " + std::to_string(seed));
      const AdaptiveRun::Options options = options_of(seed);
      const Topology contended = with_links(two_racks(core), "rack0-1 ", 40);
      AdaptiveRun run(two_racks(core), options);
      run.iterations(12);
      change(run, contended);
      run.iterations(21);
      EXPECT_THAT(run.slow_links(), ::testing::UnorderedElementsAre("rack0-1 out", "rack0-1 in"));
      EXPECT_LE(run.iterations(20), 1.15 * AdaptiveRun::fresh_seconds(contended, options));
      change(run, two_racks(core));
      run.iterations(45);
      EXPECT_LE(run.iterations(20), 1.15 * AdaptiveRun::fresh_seconds(two_racks(core), options));
      EXPECT_LE(run.policy.changes(), 3);
    }
  }
}

// Hosts are busy, so that probes tell little.
TEST(PolicyTest, AFlowOnANicIsFoundAsThatNic) {
  for (const double core : {50.0, 200.0}) {
    for (unsigned seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE("core " + std::to_string(core) + ", seed " + std::to_string(seed));
      AdaptiveRun::Options options = options_of(seed);
      options.simulation.drag = 2;
      AdaptiveRun run(two_racks(core), options);
      testing::contend(run, {}, 0);
      run.iterations(12);
      testing::contend(run, {"rack0-1 out", "rack0-0 in"}, 40);
      run.iterations(30);
      ASSERT_THAT(run.changes, ::testing::Not(::testing::IsEmpty()));
      for (const PlanChange& made : run.changes) {
        for (const PlanChange::LinkChange& link : made.links) {
          EXPECT_THAT(two_racks(core).link(link.link).name, ::testing::AnyOf("rack0-1 out", "rack0-0 in"));
        }
      }
      EXPECT_THAT(run.changes.front().explanation, ::testing::HasSubstr(" (others send 1"));
      testing::contend(run, {}, 0);
      run.iterations(40);
      EXPECT_THAT(run.slow_links(), ::testing::IsEmpty());
      EXPECT_LE(run.iterations(20), 1.15 * AdaptiveRun::fresh_seconds(two_racks(core), options));
      EXPECT_LE(run.policy.changes(), 4);
    }
  }
}

// The plan for a slow core hardly uses it, so its stages do not show that the core, once back, is slow again.
TEST(PolicyTest, NoticesThatALinkItSparesIsSlowAgain) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    AdaptiveRun run(two_racks(50), options_of(seed));
    run.iterations(12);
    change(run, two_racks(12.5));
    run.iterations(20);
    ASSERT_EQ(run.policy.changes(), 1);
    change(run, two_racks(50));
    for (int i = 0; i < 20 && run.megabits("rack0 up") < 50; ++i) run.iterations(1);
    ASSERT_EQ(run.megabits("rack0 up"), 50);
    change(run, two_racks(12.5));
    for (int i = 0; i < 20 && run.megabits("rack0 up") > 25; ++i) run.iterations(1);
    EXPECT_NEAR(run.megabits("rack0 up"), 12.5, 4);
    run.iterations(20);
    EXPECT_EQ(run.policy.changes(), 1);  // it had been right all the time
  }
}

TEST(PolicyTest, TakesAChangeBackThatMadeThingsWorse) {
  AdaptiveRun run(two_racks(200), options_of(1));
  const Schedule first = run.policy.plan().rounds;
  const Topology contended = with_links(two_racks(200), "rack0-1 ", 60);
  run.iterations(12);
  change(run, contended);
  while (run.policy.changes() < 1) run.iterations(1);
  EXPECT_FALSE(run.policy.plan().rounds == first);
  // The flow that contends for the NIC takes all that the new plan leaves to it.
  change(run, with_links(two_racks(200), "rack0-1 ", 5));
  while (run.policy.changes() < 2) run.iterations(1);
  change(run, contended);
  EXPECT_TRUE(run.policy.plan().rounds == first);
  EXPECT_THAT(run.changes.back().explanation, ::testing::HasSubstr("back to the plan before"));
  run.iterations(60);
  EXPECT_EQ(run.policy.changes(), 2);
  change(run, with_links(contended, "rack0 ", 10));  // that is another matter
  run.iterations(40);
  EXPECT_EQ(run.policy.changes(), 3);
}

// A change for a core that is back is on trial when the core is cut again: that says nothing about the new plan.
TEST(PolicyTest, ATrialInWhichTheNetworkChangesProvesNothing) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    AdaptiveRun run(two_racks(200), options_of(seed));
    run.iterations(12);
    for (int turn = 1; turn <= 3; ++turn) {
      change(run, two_racks(turn % 2 == 1 ? 25 : 200));
      for (int i = 0; i < 60 && run.policy.changes() < turn; ++i) run.iterations(1);
      ASSERT_EQ(run.policy.changes(), turn);
    }
    for (const PlanChange& made : run.changes) {
      EXPECT_THAT(made.explanation, ::testing::Not(::testing::HasSubstr("back to the plan before")));
    }
  }
}

// A plan is on trial when the link that it spares gets slower still. That looks like a flow that takes what the plan
// leaves to it; but with the plan before it is no better, so nothing keeps the policy from acting.
TEST(PolicyTest, AChangeThatWasTakenBackForNothingIsNoLesson) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    AdaptiveRun run(two_racks(200), options_of(seed));
    run.iterations(12);
    change(run, two_racks(100));
    while (run.policy.changes() < 1) run.iterations(1);
    change(run, two_racks(20));
    run.iterations(15);
    ASSERT_GE(run.changes.size(), 2U);
    EXPECT_THAT(run.changes[1].explanation, ::testing::HasSubstr("back to the plan before"));
    run.iterations(10);
    EXPECT_LE(run.iterations(10), 1.15 * AdaptiveRun::fresh_seconds(two_racks(20), options_of(seed)));
  }
}

TEST(PolicyTest, ASlowWorkerChangesNothing) {
  for (const double core : {50.0, 200.0}) {
    AdaptiveRun run(two_racks(core), options_of(1));
    run.iterations(12);
    for (const double compute : {0.1, 0.2, 1.0}) {
      run.simulation.set_compute(3, compute);
      run.iterations(30);
    }
    EXPECT_THAT(run.slow_links(), ::testing::IsEmpty());
    EXPECT_EQ(run.policy.changes(), 0);
  }
}

TEST(PolicyTest, NoiseChangesNothing) {
  std::vector<double> nics(8, 25e6);
  nics[2] = nics[5] = 12.5e6;
  for (const Topology& topology :
       {two_racks(200), two_racks(50), testing::flat(8, 25e6), testing::hosts_with_nics(nics),
        testing::racks(4, 4, 25e6, 12.5e6), testing::three_levels(2, 2, 4, 1, 25e6, 25e6, 6.25e6)}) {
    for (const bool rough : {false, true}) {
      AdaptiveRun::Options options = options_of(3);
      options.simulation.noise = 0.1;
      if (rough) {
        options.simulation.unfairness = 0.8;
        options.simulation.operation_seconds = 0.008;
        options.simulation.lost = 0.05;
      }
      AdaptiveRun run(topology, options);
      run.iterations(150);
      EXPECT_EQ(run.policy.changes(), 0);
    }
  }
}

TEST(PolicyTest, FindsItsWayWithoutProbes) {
  AdaptiveRun::Options options = options_of(1);
  options.probes = false;
  AdaptiveRun run(two_racks(200), options);
  run.iterations(12);
  change(run, two_racks(25));
  run.iterations(24);
  EXPECT_LE(run.iterations(20), 1.15 * AdaptiveRun::fresh_seconds(two_racks(25), options));
  change(run, two_racks(200));
  run.iterations(60);
  EXPECT_LE(run.iterations(20), 1.15 * AdaptiveRun::fresh_seconds(two_racks(200), options));
}

// Seconds of an iteration over two minutes of contention that comes and goes.
double mean_over_wave(const AdaptiveRun::Options& options, const Topology& planned, const Topology& on,
                      const Topology& off, double quiet, double contended, int* changes = nullptr) {
  AdaptiveRun run(planned, options);
  for (double time = 0; time < 120; time += quiet + contended) {
    run.simulation.change_network(time, off);
    run.simulation.change_network(time + quiet, on);
  }
  run.run_until(120);
  if (changes != nullptr) *changes = run.policy.changes();
  return run.simulation.now() / static_cast<double>(run.iteration);
}

void expect_wave_costs_little(double off, double on, double bytes, double quiet, double contended) {
  for (unsigned seed = 1; seed <= 2; ++seed) {
    AdaptiveRun::Options options = options_of(seed, bytes);
    const auto mean = [&](double planned, int* changes) {
      return mean_over_wave(options, two_racks(planned), two_racks(on), two_racks(off), quiet, contended, changes);
    };
    int changes = 0;
    const double adaptive = mean(off, &changes);
    options.adapts = false;
    const double planned_off = mean(off, nullptr);
    const double planned_on = mean(on, nullptr);
    std::printf("core %g for %g s, %g for %g s, %g MB: %.3f or %.3f static, %.3f adaptive (%.2f), %d changes\n", off,
                quiet, on, contended, bytes / 1e6, planned_off, planned_on, adaptive,
                adaptive / std::min(planned_off, planned_on), changes);
    EXPECT_LE(adaptive, 1.1 * std::min(planned_off, planned_on));
    EXPECT_LE(changes, 12);
  }
}

TEST(PolicyTest, SquareWaveCostsLittle) {
  for (const auto& [off, on] : {std::pair(50.0, 25.0), std::pair(50.0, 12.5), std::pair(200.0, 25.0)}) {
    for (const double bytes : {1e6, 8e6}) {
      for (const double period : {5.0, 20.0}) expect_wave_costs_little(off, on, bytes, period, period);
    }
  }
}

TEST(PolicyTest, ShortBreaksOfLongContentionCostLittle) { expect_wave_costs_little(50, 12.5, 8e6, 3, 12); }

TEST(PolicyTest, ComputingHidesWhatAveragesCost) {
  AdaptiveRun::Options options = options_of(1);
  options.policy.overlap = true;
  options.simulation.compute_seconds = 10;
  AdaptiveRun run(two_racks(50), options);
  run.iterations(12);
  change(run, two_racks(25));
  run.iterations(30);
  EXPECT_EQ(run.policy.changes(), 0);
}

}  // namespace
}  // namespace dssync
