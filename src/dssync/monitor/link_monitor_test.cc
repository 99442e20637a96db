// From the samples of simulated training runs to capacities.
#include "dssync/monitor/link_monitor.h"

#include <algorithm>
#include <cmath>
#include <random>
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
using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::SimulationOptions;
using ::testing::SizeIs;
using ::testing::StartsWith;
using testing::two_racks;
using ::testing::UnorderedElementsAre;
using testing::with_links;

using testing::kMegabit;

Topology unequal_nics() {
  std::vector<double> nics(8, 200 * kMegabit);
  nics[2] = nics[5] = 100 * kMegabit;
  return testing::hosts_with_nics(nics);
}

LinkId link_named(const std::string& name) {
  const Topology network = two_racks(200);
  const auto& links = network.links();
  const auto found = std::find_if(links.begin(), links.end(), [&](const Link& link) { return link.name == name; });
  return static_cast<LinkId>(found - links.begin());
}

struct NamedNetwork {
  std::string name;
  Topology topology;
};

std::vector<NamedNetwork> networks() {
  return {{"core as fast as a NIC", two_racks(200)},
          {"core at a quarter", two_racks(50)},
          {"core at an eighth", two_racks(25)},
          {"flat", testing::flat(8, 200 * kMegabit)},
          {"unequal NICs", unequal_nics()},
          {"four racks", testing::racks(4, 4, 200 * kMegabit, 100 * kMegabit)},
          {"three levels", testing::three_levels(2, 2, 4, 1, 200 * kMegabit, 200 * kMegabit, 50 * kMegabit)}};
}

// Watches without changing plans: what the samples of one plan tell.
AdaptiveRun::Options watching(unsigned seed, double lost = 0) {
  AdaptiveRun::Options options;
  options.simulation.seed = seed;
  options.simulation.noise = 0.05;
  options.simulation.lost = lost;
  options.policy.least_gain = 10;  // never
  return options;
}

// The same, and nobody probes.
AdaptiveRun::Options only_watching(unsigned seed, double lost = 0) {
  AdaptiveRun::Options options = watching(seed, lost);
  options.probes = false;
  return options;
}

// From 200 to 25 Mbit/s, which is then known.
void cut_core(AdaptiveRun& run) {
  run.iterations(9);
  run.simulation.change_network(run.simulation.now(), two_racks(25));
  run.iterations(18);
  ASSERT_THAT(run.slow_links(), SizeIs(4));
}

TEST(LinkMonitorTest, QuietNetworksHaveNoSlowLinks) {
  for (const auto& [name, topology] : networks()) {
    for (unsigned seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(name + ", seed " + std::to_string(seed));
      AdaptiveRun run(topology, watching(seed, 0.03));
      for (int batch = 0; batch < 15; ++batch) {
        run.iterations(3);
        EXPECT_THAT(run.monitor.findings(), IsEmpty());
      }
      EXPECT_THAT(run.monitor.links_to_probe(), IsEmpty());
    }
  }
}

TEST(LinkMonitorTest, FindsTheCoreThatWasCut) {
  for (const double core : {50.0, 100.0, 200.0}) {
    for (unsigned seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(std::to_string(core) + ", seed " + std::to_string(seed));
      AdaptiveRun run(two_racks(core), watching(seed));
      run.iterations(9);
      run.simulation.change_network(run.simulation.now(), two_racks(core / 4));
      run.iterations(9);
      EXPECT_THAT(run.slow_links(), UnorderedElementsAre("rack0 up", "rack0 down", "rack1 up", "rack1 down"));
      for (const std::string& link : run.slow_links()) EXPECT_NEAR(run.megabits(link), core / 4, core / 4 * 0.25);
      run.simulation.change_network(run.simulation.now(), two_racks(core));
      run.iterations(30);
      EXPECT_THAT(run.slow_links(), IsEmpty());
    }
  }
}

TEST(LinkMonitorTest, FindsOneNicAndNotItsRack) {
  for (const auto& [name, topology] : networks()) {
    const std::string host = topology.node(topology.host_at(1)).name;
    for (unsigned seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(name + ", seed " + std::to_string(seed));
      AdaptiveRun run(topology, watching(seed));
      run.iterations(9);
      run.simulation.change_network(run.simulation.now(), with_links(topology, host + " ", 25));
      run.iterations(18);
      EXPECT_THAT(run.slow_links(), UnorderedElementsAre(host + " out", host + " in"));
      EXPECT_NEAR(run.megabits(host + " out"), 25, 12);
      run.simulation.change_network(run.simulation.now(), topology);
      run.iterations(40);
      EXPECT_THAT(run.slow_links(), IsEmpty());
    }
  }
}

TEST(LinkMonitorTest, FindsAContendedDirection) {
  AdaptiveRun run(two_racks(50), watching(3));
  run.iterations(9);
  run.simulation.change_network(run.simulation.now(), with_links(two_racks(50), "rack0-2 in", 25));
  run.iterations(18);
  EXPECT_THAT(run.slow_links(), Each(StartsWith("rack0-2 ")));
  EXPECT_THAT(run.slow_links(), Not(IsEmpty()));
}

// Probes that busy hosts hold up prove little, so that they clear nobody; compared with each other they tell.
TEST(LinkMonitorTest, FindsANicThatIsOnlySlightlyContendedByProbesOfBusyHosts) {
  int found = 0;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    AdaptiveRun::Options options = watching(seed);
    options.simulation.drag = 2;
    AdaptiveRun run(two_racks(200), options);
    run.iterations(9);
    run.simulation.change_network(run.simulation.now(), with_links(two_racks(200), "rack0-1 ", 120));
    run.iterations(18);
    const std::vector<std::string> slow = run.slow_links();
    const bool only_it =
        std::all_of(slow.begin(), slow.end(), [](const std::string& link) { return link.starts_with("rack0-1 "); });
    if (!slow.empty() && only_it) ++found;
  }
  EXPECT_GE(found, 9);
}

// No probe is needed, and no doubt arises, where an interface counts more than was sent.
TEST(LinkMonitorTest, FindsTheNicThatOthersUseAsItsInterfaceCounts) {
  for (const auto& [name, topology] : networks()) {
    const std::string from = topology.node(topology.host_at(1)).name;
    const std::string to = topology.node(topology.host_at(0)).name;
    for (unsigned seed = 1; seed <= 5; ++seed) {
      for (const double left : {30.0, 60.0}) {
        SCOPED_TRACE(name + ", seed " + std::to_string(seed) + ", left " + std::to_string(left));
        AdaptiveRun run(topology, only_watching(seed, 0.03));
        testing::contend(run, {}, 0);
        for (int i = 0; i < 12; ++i) {
          run.iterations(1);
          EXPECT_THAT(run.slow_links(), IsEmpty());
        }
        testing::contend(run, {from + " out", to + " in"}, left);
        for (int i = 0; i < 24; ++i) {
          run.iterations(1);
          EXPECT_THAT(run.slow_links(), ::testing::IsSubsetOf({from + " out", to + " in"}));
          EXPECT_FALSE(run.monitor.undecided());
        }
        EXPECT_THAT(run.slow_links(), Not(IsEmpty()));
      }
    }
  }
}

// A small probe slips through a NIC that others fill. Once they are gone, it counts.
TEST(LinkMonitorTest, AProbeDoesNotClearALinkThatOthersFill) {
  AdaptiveRun run(two_racks(200), only_watching(1));
  testing::contend(run, {}, 0);
  run.iterations(9);
  testing::contend(run, {"rack0-1 out", "rack0-0 in"}, 40);
  run.iterations(9);
  const auto probe = [&] {
    SampleBatch batch;
    for (const auto& [from, to] : {std::pair(1, 2), std::pair(3, 0)}) {
      batch.probes.push_back({run.iteration - 1, from, to, 1.5 * kMegabit, 0.01, 0});
    }
    run.monitor.add(batch);
    run.iterations(1);
  };
  ASSERT_THAT(run.slow_links(), UnorderedElementsAre("rack0-1 out", "rack0-0 in"));
  probe();
  EXPECT_NEAR(run.megabits("rack0-1 out"), 40, 10);
  EXPECT_NEAR(run.megabits("rack0-0 in"), 40, 10);
  testing::contend(run, {}, 0);
  run.iterations(3);
  probe();
  EXPECT_THAT(run.slow_links(), IsEmpty());
}

std::vector<std::string> slow_beyond_doubt(const LinkMonitor& monitor) {
  std::vector<std::string> names;
  for (std::size_t link = 0; link < monitor.estimates().size(); ++link) {
    const LinkEstimate& estimate = monitor.estimates()[link];
    if (estimate.slow_since >= 0 && !estimate.ambiguous) names.push_back(monitor.nominal().links()[link].name);
  }
  return names;
}

// They use a NIC, but what is slow is something else.
TEST(LinkMonitorTest, OthersWhoTakeLittleExplainLittle) {
  for (const double core : {50.0, 200.0}) {
    for (unsigned seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE("core " + std::to_string(core) + ", seed " + std::to_string(seed));
      AdaptiveRun run(two_racks(core), watching(seed));
      testing::contend(run, {"rack0-1 out"}, 170);
      run.iterations(12);
      run.simulation.change_network(run.simulation.now(), with_links(two_racks(core / 8), "rack0-1 out", 170));
      for (int i = 0; i < 12; ++i) {
        run.iterations(1);
        EXPECT_THAT(slow_beyond_doubt(run.monitor),
                    ::testing::IsSubsetOf({"rack0 up", "rack0 down", "rack1 up", "rack1 down"}));
      }
      EXPECT_THAT(slow_beyond_doubt(run.monitor), SizeIs(4));
    }
  }
}

TEST(LinkMonitorTest, ASlowWorkerIsNoSlowLink) {
  for (const auto& [name, topology] : networks()) {
    for (const double compute : {0.1, 0.5}) {
      SCOPED_TRACE(name);
      AdaptiveRun run(topology, watching(1, 0.03));
      run.iterations(9);
      run.simulation.set_compute(1, compute);
      for (int batch = 0; batch < 10; ++batch) {
        run.iterations(3);
        EXPECT_THAT(run.monitor.findings(), IsEmpty());
      }
      EXPECT_NEAR(run.monitor.compute_seconds(), compute, 0.1 * compute);
    }
  }
}

TEST(LinkMonitorTest, EveryWorkerMayBeLateInTurn) {
  AdaptiveRun run(two_racks(50), watching(2));
  std::mt19937 random(7);
  run.iterations(9);
  for (int batch = 0; batch < 20; ++batch) {
    for (Rank rank = 0; rank < 8; ++rank)
      run.simulation.set_compute(rank, 0.02 + 0.001 * static_cast<double>(random() % 300));
    run.iterations(3);
    EXPECT_THAT(run.slow_links(), IsEmpty());
  }
}

TEST(LinkMonitorTest, LosesSamplesAndStillFindsTheLink) {
  for (const double lost : {0.05, 0.1}) {
    AdaptiveRun run(two_racks(50), watching(5, lost));
    run.iterations(12);
    run.simulation.change_network(run.simulation.now(), two_racks(12.5));
    run.iterations(18);
    EXPECT_THAT(run.slow_links(), UnorderedElementsAre("rack0 up", "rack0 down", "rack1 up", "rack1 down"));
  }
}

// One plan, one simulation, its samples batch by batch.
struct Recording {
  Recording() : table(make_table()) {
    testing::TrainingSimulation simulation(two_racks(50), 8e6);
    simulation.adopt(table);
    std::int64_t iteration = 0;
    for (int batch = 0; batch < 10; ++batch) {
      if (batch == 4) simulation.change_network(simulation.now(), two_racks(12.5));
      batches.emplace_back();
      for (int i = 0; i < 3; ++i) {
        simulation.run(iteration++, batches.back());
        if (batch >= 6) simulation.run(Probe{.transfers = {{0, 4, 4e4}, {1, 2, 4e4}}}, iteration, batches.back());
      }
    }
  }

  static std::shared_ptr<const StageTable> make_table() {
    const Plan plan = *Planner(two_racks(50), 8e6).best(0.5);
    return std::make_shared<StageTable>(plan.rounds, plan.shards, two_racks(50), 8e6);
  }

  std::unique_ptr<LinkMonitor> monitor() const {
    auto result = std::make_unique<LinkMonitor>(two_racks(50));
    result->adopt(0, table);
    return result;
  }

  std::shared_ptr<const StageTable> table;
  std::vector<SampleBatch> batches;
};

void expect_same(const LinkMonitor& a, const LinkMonitor& b) {
  for (std::size_t link = 0; link < a.estimates().size(); ++link) {
    EXPECT_EQ(a.estimates()[link].capacity, b.estimates()[link].capacity);
    EXPECT_EQ(a.estimates()[link].low, b.estimates()[link].low);
    EXPECT_EQ(a.estimates()[link].high, b.estimates()[link].high);
    EXPECT_EQ(a.estimates()[link].heard, b.estimates()[link].heard);
  }
}

TEST(LinkMonitorTest, OrderAndCopiesDoNotMatter) {
  const Recording recording;
  const auto straight = recording.monitor();
  const auto shuffled = recording.monitor();
  std::mt19937 random(1);
  for (SampleBatch batch : recording.batches) {
    straight->add(batch);
    std::shuffle(batch.stages.begin(), batch.stages.end(), random);
    std::shuffle(batch.workers.begin(), batch.workers.end(), random);
    std::shuffle(batch.probes.begin(), batch.probes.end(), random);
    batch.stages.insert(batch.stages.end(), batch.stages.begin(), batch.stages.begin() + 20);
    const std::vector<ProbeSample> probes = batch.probes;
    batch.probes.insert(batch.probes.end(), probes.begin(), probes.end());
    shuffled->add(batch);
    expect_same(*straight, *shuffled);
  }
  EXPECT_FALSE(straight->estimates()[0].capacity == two_racks(50).link(0).capacity);
}

// By hand: the slowest worker's computing, and the averages of whoever waited least.
TEST(LinkMonitorTest, KnowsHowLongIterationsTook) {
  const Recording recording;
  const auto monitor = recording.monitor();
  const auto tell = [&](std::int64_t iteration, double compute, double sync) {
    SampleBatch batch;
    batch.workers = {{iteration, 0, compute, sync + 0.1}, {iteration, 1, compute - 0.1, sync}};
    monitor->add(batch);
  };
  const auto expect_elapsed = [&](double in_line, double overlapped) {
    EXPECT_NEAR(monitor->elapsed_seconds(false), in_line, 1e-9);
    EXPECT_NEAR(monitor->elapsed_seconds(true), overlapped, 1e-9);
  };
  expect_elapsed(0, 0);
  tell(1000, 0.2, 0.3);  // training was resumed: nothing is known of what was before
  tell(1001, 0.2, 0.3);
  expect_elapsed(1, 0.6);
  tell(1002, 0.2, 2.3);  // two slow ones are all that a short time of contention has
  tell(1003, 0.2, 2.3);
  expect_elapsed(6, 5.2);
  EXPECT_NEAR(monitor->iteration_seconds(false), 2.5, 1e-9);
  tell(1004, 0.2, 0.3);
  tell(1005, 0.2, 0.3);
  tell(1008, 0.2, 0.3);  // of two nothing was heard: they took as long as most lately
  expect_elapsed(8.5, 6.7);
  monitor->adopt(1009, Recording::make_table());
  tell(1009, 0.2, 0.8);
  expect_elapsed(9.5, 7.5);
  EXPECT_NEAR(monitor->iteration_seconds(true), 0.8, 1e-9);
}

// What CPUs take of a stage's time does not grow when a link becomes slow.
TEST(LinkMonitorTest, SlowHostsDoNotMakeASlowLinkSeemFaster) {
  const Plan plan = *Planner(two_racks(200), 8e6).best(0.5);
  const auto table = std::make_shared<StageTable>(plan.rounds, plan.shards, two_racks(200), 8e6);
  testing::TrainingSimulation simulation(two_racks(200), 8e6);
  simulation.adopt(table);
  LinkMonitor monitor(two_racks(200));
  monitor.adopt(0, table);
  const auto run = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t iteration = first; iteration <= last; ++iteration) {
      SampleBatch batch;
      simulation.run(iteration, batch);
      for (StageSample& sample : batch.stages) sample.seconds += 0.12;
      monitor.add(batch);
    }
  };
  run(0, 11);
  EXPECT_THAT(slow_beyond_doubt(monitor), IsEmpty());
  simulation.change_network(simulation.now(), two_racks(25));
  run(12, 31);
  EXPECT_THAT(slow_beyond_doubt(monitor), SizeIs(4));
  for (const char* name : {"rack0 up", "rack0 down", "rack1 up", "rack1 down"}) {
    const LinkEstimate& estimate = monitor.estimates()[static_cast<std::size_t>(link_named(name))];
    EXPECT_NEAR(estimate.capacity.bytes_per_second / kMegabit, 25, 2) << name;
  }
}

// However little a probe that meets other traffic brings.
TEST(LinkMonitorTest, WantsToKnowForAWhileHowFastALinkHasBecome) {
  AdaptiveRun run(two_racks(200), only_watching(1));
  ASSERT_NO_FATAL_FAILURE(cut_core(run));
  EXPECT_FALSE(run.monitor.recovering());
  run.simulation.change_network(run.simulation.now(), two_racks(50));
  int iterations = 0;
  for (; iterations < 6 && !run.monitor.recovering(); ++iterations) run.iterations(1);
  EXPECT_TRUE(run.monitor.recovering());
  run.iterations(4);
  EXPECT_TRUE(run.monitor.recovering());
  run.iterations(8);
  EXPECT_FALSE(run.monitor.recovering());
  EXPECT_THAT(run.slow_links(), SizeIs(4));
}

// A probe finds that one direction of the core is back: the other one is to be probed next, recently heard of or not.
TEST(LinkMonitorTest, WhenOneLinkRecoversItAsksForTheOthers) {
  AdaptiveRun run(two_racks(200), only_watching(1));
  ASSERT_NO_FATAL_FAILURE(cut_core(run));
  ASSERT_THAT(run.monitor.links_to_probe(), IsEmpty());
  SampleBatch batch;
  batch.probes = {{run.iteration, 0, 4, 150 * kMegabit / 100, 0.01, 0}};
  batch.workers = {{run.iteration, 0, 0.05, 2}};
  run.monitor.add(batch);
  EXPECT_THAT(run.slow_links(), UnorderedElementsAre("rack0 down", "rack1 up"));
  EXPECT_TRUE(run.monitor.recovering());
  EXPECT_THAT(run.monitor.links_to_probe(),
              ::testing::IsSupersetOf({link_named("rack0 down"), link_named("rack1 up")}));
}

TEST(LinkMonitorTest, JudgesAnIterationOnce) {
  const Recording recording;
  const auto once = recording.monitor();
  const auto again = recording.monitor();
  for (std::size_t i = 0; i < recording.batches.size(); ++i) {
    once->add(recording.batches[i]);
    SampleBatch more = recording.batches[i];
    if (i > 0) {
      const std::vector<StageSample>& old = recording.batches[i - 1].stages;
      more.stages.insert(more.stages.end(), old.begin(), old.end());
    }
    again->add(more);
    expect_same(*once, *again);
  }
}

TEST(LinkMonitorTest, IgnoresNonsense) {
  const Recording recording;
  const auto clean = recording.monitor();
  const auto dirty = recording.monitor();
  for (SampleBatch batch : recording.batches) {
    clean->add(batch);
    const std::int64_t iteration = batch.stages.front().iteration;
    batch.stages.push_back({iteration, -1, 0, 1e6, 1});
    batch.stages.push_back({iteration, 10000, 0, 1e6, 1});
    batch.stages.push_back({iteration, 0, 99, 1e6, 1});
    batch.stages.push_back({iteration, 0, 0, std::nan(""), 1});
    batch.stages.push_back({iteration, 0, 0, 1e6, -1});
    batch.stages.push_back({iteration, 0, 0, 1e6, INFINITY});
    batch.stages.push_back({-5, 0, 0, 1e6, 1});
    batch.workers.push_back({iteration, 99, 1, 1});
    batch.workers.push_back({iteration, 0, std::nan(""), 1});
    batch.workers.push_back({iteration, 0, 1, 1, 1, -1, 0});
    batch.workers.push_back({iteration, 99, 1, 1, 1, 1e9, 1e9});
    batch.probes.push_back({iteration, 0, 99, 1e6, 1});
    batch.probes.push_back({iteration, 0, 1, 0, 1});
    dirty->add(batch);
    expect_same(*clean, *dirty);
  }
  dirty->add({});
  expect_same(*clean, *dirty);
}

TEST(LinkMonitorTest, ReadsAnIterationWithThePlanItHad) {
  const Recording recording;
  const Topology topology = two_racks(50);
  const Plan other = *Planner(topology, 8e6).best(2);
  const auto table = std::make_shared<StageTable>(other.rounds, other.shards, topology, 8e6);
  testing::TrainingSimulation simulation(topology, 8e6);
  const auto monitor = recording.monitor();
  SampleBatch batch;
  simulation.adopt(recording.table);
  for (std::int64_t t = 0; t < 4; ++t) simulation.run(t, batch);
  simulation.adopt(table);
  monitor->adopt(4, table);
  for (std::int64_t t = 4; t < 8; ++t) simulation.run(t, batch);
  monitor->add(batch);
  EXPECT_THAT(monitor->findings(), IsEmpty());
  EXPECT_EQ(monitor->last_iteration(), 7);
}

TEST(LinkMonitorTest, TakesASilentLinkForRecoveredByAndBy) {
  const Recording recording;
  const auto monitor = recording.monitor();
  for (const SampleBatch& batch : recording.batches) monitor->add(batch);
  EXPECT_NEAR(monitor->estimates()[0].capacity.bytes_per_second, 12.5 * kMegabit, 3 * kMegabit);
  for (std::int64_t t = 30; t < 160; ++t) {
    SampleBatch batch;
    batch.workers.push_back({t, 0, 0.1, 0.1});
    monitor->add(batch);
    if (t == 50) {
      EXPECT_THAT(monitor->links_to_probe(), Not(IsEmpty()));
    }
  }
  EXPECT_EQ(monitor->estimates()[0].capacity, two_racks(50).link(0).capacity);
}

}  // namespace
}  // namespace dssync
