// Numbers, loads and times of a plan's stages.
#include "dssync/planner/stage_table.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/planner/planner.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

// Two racks of four, 200 Mbit/s a host.
Topology two_racks(double core_megabits) { return testing::racks(2, 4, 25e6, core_megabits * 125e3); }

Plan plan_for(const Topology& topology, double bytes, double disagreement = 0.5) {
  return *Planner(topology, bytes).best(disagreement);
}

TEST(StageTableTest, TakesAsLongAsTheCostModelSays) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Topology topology = testing::random_tree(seed, 12);
    if (topology.workers() < 2) continue;
    for (const double limit : {0.1, 0.5, 2.0}) {
      const Plan plan = plan_for(topology, 100, limit);
      const StageTable table(plan.rounds, plan.shards, topology, 100);
      // With latencies, the cost model may choose a ring for a shard where the runtime doesn't for the whole vector.
      const bool has_latency = plan.cost.latency_seconds > 0;
      EXPECT_NEAR(table.seconds_per_iteration(topology), plan.cost.seconds_per_iteration,
                  (has_latency ? 0.1 : 1e-9) * plan.cost.seconds_per_iteration)
          << "seed " << seed << ", limit " << limit;
    }
    const Plan published = Planner(topology, 100).published();
    const StageTable table(published.rounds, published.shards, topology, 100);
    EXPECT_NEAR(table.seconds_per_iteration(topology), published.cost.seconds_per_iteration, 1e-6) << "seed " << seed;
  }
}

TEST(StageTableTest, MembersTogetherLoadLinksAsTheStageDoes) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Topology topology = testing::random_tree(seed, 20);
    if (topology.workers() < 2) continue;
    const Plan plan = plan_for(topology, 100);
    const StageTable table(plan.rounds, plan.shards, topology, 100);
    for (const TableStage& stage : table.stages()) {
      std::vector<double> sent(topology.links().size(), 0);
      std::vector<double> received(topology.links().size(), 0);
      for (const MemberTraffic& member : stage.members) {
        for (const auto& [link, bytes] : member.outgoing) sent[static_cast<std::size_t>(link)] += bytes;
        for (const auto& [link, bytes] : member.incoming) received[static_cast<std::size_t>(link)] += bytes;
      }
      for (const auto& [link, bytes] : stage.loads) {
        EXPECT_NEAR(sent[static_cast<std::size_t>(link)], bytes, 1e-9);
        EXPECT_NEAR(received[static_cast<std::size_t>(link)], bytes, 1e-9);
      }
    }
  }
}

TEST(StageTableTest, NumbersTheStagesOfEachGroup) {
  const Topology topology = two_racks(50);
  const Plan plan = plan_for(topology, 8e6);
  const StageTable table(plan.rounds, plan.shards, topology, 8e6);
  int expected = 0;  // stages are numbered in this very order
  for (const std::size_t round : table.cycle().distinct()) {
    for (std::size_t group = 0; group < plan.rounds[round].groups.size(); ++group) {
      const auto numbers = table.numbers_of(round, group);
      EXPECT_EQ(numbers.empty(), plan.rounds[round].groups[group].size() == 1);
      for (std::size_t phase = 0; phase < numbers.size(); ++phase) {
        for (const int number : numbers[phase]) {
          EXPECT_EQ(number, expected++);
          EXPECT_EQ(table.at(number).phase, static_cast<int>(phase));
          EXPECT_EQ(table.at(number).group, static_cast<int>(group));
          EXPECT_EQ(table.at(number).round, static_cast<int>(round));
          EXPECT_THAT(plan.rounds[round].groups[group], ::testing::IsSupersetOf(table.at(number).stage.members));
        }
      }
    }
  }
  EXPECT_EQ(expected, table.size());
}

TEST(StageTableTest, TellsHowEachGroupIsLowered) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Topology topology = testing::random_tree(seed, 20);
    if (topology.workers() < 2) continue;
    const Plan plan = plan_for(topology, 100);
    const StageTable table(plan.rounds, plan.shards, topology, 100);
    for (const std::size_t round : table.cycle().distinct()) {
      for (std::size_t group = 0; group < plan.rounds[round].groups.size(); ++group) {
        const Lowering expected = lower(plan.rounds[round].groups[group], topology, 100);
        const Lowering lowering = table.lowering_of(round, group);
        ASSERT_EQ(lowering.phases.size(), expected.phases.size());
        for (std::size_t phase = 0; phase < expected.phases.size(); ++phase) {
          ASSERT_EQ(lowering.phases[phase].size(), expected.phases[phase].size());
          for (std::size_t i = 0; i < expected.phases[phase].size(); ++i) {
            EXPECT_EQ(lowering.phases[phase][i].kind, expected.phases[phase][i].kind);
            EXPECT_EQ(lowering.phases[phase][i].members, expected.phases[phase][i].members);
            EXPECT_EQ(lowering.phases[phase][i].bounds, expected.phases[phase][i].bounds);
          }
        }
      }
    }
  }
}

TEST(StageTableTest, KnowsTheCableOfEveryWorker) {
  const Topology topology = testing::racks(2, 2, 25e6, 25e6);
  const Plan plan = plan_for(topology, 8e6);
  const StageTable table(plan.rounds, plan.shards, topology, 8e6);
  std::vector<std::string> names;
  for (Rank rank = 0; rank < table.workers(); ++rank) {
    const auto [out, in] = table.cable_of(rank);
    names.push_back(topology.link(out).name);
    names.push_back(topology.link(in).name);
  }
  EXPECT_THAT(names, ::testing::ElementsAre("rack0-0 out", "rack0-0 in", "rack0-1 out", "rack0-1 in", "rack1-0 out",
                                            "rack1-0 in", "rack1-1 out", "rack1-1 in"));
}

TEST(StageTableTest, SharesAddUp) {
  const Topology topology = two_racks(25);
  const Plan plan = plan_for(topology, 8e6);
  for (const int shards : {1, plan.shards, plan.shards + 1}) {
    const StageTable table(plan.rounds, shards, topology, 8e6);
    for (std::int64_t t = 0; t < 20; ++t) {
      double sum = 0;
      for (std::size_t round = 0; round < table.rounds(); ++round) sum += table.share_of(round, t);
      EXPECT_NEAR(sum, 1, 1e-12);
    }
  }
}

}  // namespace
}  // namespace dssync
