// Which transfers tell most.
#include "dssync/monitor/probe.h"

#include <algorithm>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/monitor/testing.h"
#include "dssync/topology/routes.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using testing::AdaptiveRun;
using testing::two_racks;

// A run whose plan has one stage, so that a cut core is everybody's fault.
AdaptiveRun run_with_suspects() {
  AdaptiveRun::Options options;
  options.probes = false;
  options.policy.least_gain = 10;
  return AdaptiveRun(two_racks(200), options);
}

void cut(AdaptiveRun& run) {
  run.iterations(9);
  run.simulation.change_network(run.simulation.now(), two_racks(25));
  run.iterations(3);
}

TEST(ProbeTest, NothingToProbeOnAQuietNetwork) {
  AdaptiveRun run = run_with_suspects();
  run.iterations(9);
  EXPECT_THAT(propose_probe(run.monitor, 0, 1).transfers, ::testing::IsEmpty());
}

TEST(ProbeTest, TransfersDoNotMeet) {
  AdaptiveRun run = run_with_suspects();
  cut(run);
  ASSERT_EQ(run.monitor.links_to_probe().size(), 20);
  EXPECT_TRUE(run.monitor.undecided());
  const Topology& topology = run.monitor.nominal();
  for (std::int64_t turn = 0; turn < 12; ++turn) {
    const Probe probe = propose_probe(run.monitor, turn, 1);
    std::set<LinkId> used;
    ASSERT_FALSE(probe.transfers.empty());
    for (const ProbeTransfer& transfer : probe.transfers) {
      for (const LinkId link : route(topology, topology.host_at(topology.position_of(transfer.from)),
                                     topology.host_at(topology.position_of(transfer.to)))) {
        EXPECT_TRUE(used.insert(link).second) << "turn " << turn;
      }
    }
  }
}

TEST(ProbeTest, OneProbeInsideRacksLeavesTheCore) {
  AdaptiveRun run = run_with_suspects();
  cut(run);
  SampleBatch samples;
  const Probe probe = propose_probe(run.monitor, 0, 1);
  run.simulation.run(probe, run.iteration, samples);
  samples.workers.push_back({run.iteration, 0, 0.1, 0.1});
  run.monitor.add(samples);
  EXPECT_THAT(run.slow_links(), ::testing::UnorderedElementsAre("rack0 up", "rack0 down", "rack1 up", "rack1 down"));
  EXPECT_FALSE(run.monitor.undecided());
}

TEST(ProbeTest, KeepsItsBudget) {
  AdaptiveRun run = run_with_suspects();
  cut(run);
  for (const double seconds : {0.05, 0.5, 5.0}) {
    const Probe probe = propose_probe(run.monitor, 0, seconds, 0.01);
    EXPECT_LE(probe.seconds / static_cast<double>(probe.interval), 0.0101 * seconds);
  }
}

// An uplink of four NICs shows what it has only if four cross at once.
TEST(ProbeTest, SeveralPairsFillAWideLink) {
  AdaptiveRun::Options options;
  options.policy.least_gain = 10;
  AdaptiveRun run(testing::racks(2, 8, 25e6, 100e6), options);
  run.iterations(9);
  run.simulation.change_network(run.simulation.now(), testing::racks(2, 8, 25e6, 12.5e6));
  run.iterations(30);
  ASSERT_THAT(run.slow_links(), ::testing::Contains("rack0 up"));
  run.simulation.change_network(run.simulation.now(), testing::racks(2, 8, 25e6, 100e6));
  for (std::int64_t turn = 0; turn < 12; ++turn) {
    SampleBatch samples;
    samples.workers.push_back({run.iteration, 0, 0.1, 0.1});
    run.simulation.run(propose_probe(run.monitor, turn, 1), run.iteration++, samples);
    run.monitor.add(samples);
    for (std::int64_t quiet = 0; quiet < 20; ++quiet) {
      SampleBatch silence;
      silence.workers.push_back({run.iteration++, 0, 0.1, 0.1});
      run.monitor.add(silence);
    }
  }
  EXPECT_THAT(run.slow_links(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace dssync
