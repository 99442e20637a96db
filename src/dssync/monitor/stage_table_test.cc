// Numbers, loads and times of a plan's stages.
#include "dssync/monitor/stage_table.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/monitor/testing.h"
#include "dssync/planner/planner.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

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
      for (const TableStage::Member& member : stage.members) {
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

TEST(StageTableTest, NumbersTheStepsOfEachWorker) {
  const Topology topology = testing::two_racks(50);
  const Plan plan = plan_for(topology, 8e6);
  const StageTable table(plan.rounds, plan.shards, topology, 8e6);
  std::size_t steps = 0;
  for (std::size_t round = 0; round < table.rounds(); ++round) {
    for (Rank rank = 0; rank < topology.workers(); ++rank) {
      const auto numbers = table.numbers_of(round, rank);
      for (std::size_t phase = 0; phase < numbers.size(); ++phase) {
        for (const int number : numbers[phase]) {
          ++steps;
          EXPECT_EQ(table.at(number).phase, static_cast<int>(phase));
          EXPECT_EQ(table.at(number).round, static_cast<int>(round));
          EXPECT_THAT(table.at(number).stage.members, ::testing::Contains(rank));
        }
      }
    }
  }
  std::size_t members = 0;
  for (const TableStage& stage : table.stages()) members += stage.members.size();
  EXPECT_EQ(steps, members);
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
  const Topology topology = testing::two_racks(25);
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
