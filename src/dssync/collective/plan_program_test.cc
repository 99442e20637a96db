// Plans as workers carry them out: what the engine says about stages is what the plan's table expects of them.
#include "dssync/collective/plan_program.h"

#include <map>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "dssync/collective/engine.h"
#include "dssync/comm/testing.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using testing::run_ranks;

constexpr std::int64_t kElements = 120'000;
constexpr double kBytes = 4 * kElements;

TEST(PlanProgramTest, StagesSendWhatTheTableSays) {
  const Topology topology = testing::racks(2, 3, 25e6, 5e6);
  const Plan plan = *Planner(topology, kBytes).best(0.3);
  run_ranks(6, [&](World& world) {
    const auto program = make_plan_program(world, plan, topology, kBytes);
    Engine engine(explained_by(world), nullptr);
    int numbered = 0;
    for (const std::size_t round : program->table->cycle().distinct()) {
      if (program->chains[round].empty()) continue;
      const at::Tensor vector = at::ones({kElements}, at::kFloat);
      engine.average(vector, {program, &program->chains[round]}, 0, Seconds(1));
      require_done(engine.wait());
      std::map<int, double> sent;
      for (const StageUse& use : engine.take_stage_uses()) {
        EXPECT_LE(use.start, use.end);
        sent[use.stage] += static_cast<double>(use.bytes);
      }
      for (const auto& [stage, bytes] : sent) {
        const TableStage& expected = program->table->at(stage);
        const auto& members = expected.stage.members;
        const auto self = std::find(members.begin(), members.end(), world.rank());
        ASSERT_NE(self, members.end());
        EXPECT_EQ(static_cast<std::size_t>(expected.round), round);
        const double share = expected.members[static_cast<std::size_t>(self - members.begin())].sent;
        EXPECT_NEAR(bytes, share * kBytes, 0.001 * kBytes) << "stage " << stage;
        ++numbered;
      }
    }
    EXPECT_GT(numbered, 0);
  });
}

TEST(PlanProgramTest, OutsideOfAPlanStagesHaveNoNumber) {
  const Topology topology = testing::racks(2, 2, 25e6, 5e6);
  run_ranks(4, [&](World& world) {
    ChainBuilder builder(world, topology);
    builder.add(lower(world.everyone(), topology, kBytes), 4);
    const std::vector<Chain> chains = builder.build();
    Engine engine(explained_by(world), nullptr);
    engine.average(at::ones({kElements}, at::kFloat), std::make_shared<const Chain>(chains.front()), 0, Seconds(1));
    require_done(engine.wait());
    EXPECT_TRUE(engine.take_stage_uses().empty());
  });
}

}  // namespace
}  // namespace dssync
