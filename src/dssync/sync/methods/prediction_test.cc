// Prediction meets practice: what mixing.h says of a schedule is what the runtime does.
#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "dssync/comm/testing.h"
#include "dssync/planner/planner.h"
#include "dssync/sync/synchronizer.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using testing::run_ranks;

struct PredictedSetting {
  std::string name;
  int workers;
  Plan plan;
  Overlap overlap;
};

Topology network(int workers) { return workers == 8 ? testing::racks(2, 4, 4, 1) : testing::flat(workers, 4); }

Plan fixed(const Schedule& schedule, int workers, int shards) {
  Plan plan;
  plan.rounds = schedule;
  plan.shards = shards;
  plan.mixing = measure_mixing(schedule, workers);
  return plan;
}

Schedule global_every(int workers, int period) {
  Round alone{"nobody", {}};
  Round all{"all", {{}}};
  for (Rank rank = 0; rank < workers; ++rank) {
    alone.groups.push_back({rank});
    all.groups.front().push_back(rank);
  }
  Schedule schedule(static_cast<std::size_t>(period - 1), alone);
  schedule.push_back(all);
  return schedule;
}

// The planner's choice at two limits, with a group limit, the published schedule, local SGD.
std::vector<PredictedSetting> settings() {
  std::vector<PredictedSetting> result;
  for (const int workers : {8, 13}) {
    const Topology topology = network(workers);
    std::vector<std::pair<std::string, Plan>> plans;
    plans.emplace_back("half", Planner(topology, 1e6).best(0.5).value());
    plans.emplace_back("one", Planner(topology, 1e6).best(1).value());
    plans.emplace_back("groups_of_3", Planner(topology, 1e6, 3).best(1.2).value());
    plans.emplace_back("published", Planner(topology, 1e6).published());
    plans.emplace_back("local_sgd", fixed(global_every(workers, 4), workers, 1));
    if (workers == 8) {
      const std::vector<Group> racks = {{0, 1, 2, 3}, {4, 5, 6, 7}};
      const std::vector<Group> unequal = {{0}, {1}, {2}, {3}, {4, 5, 6, 7}};
      plans.emplace_back("exact_racks", Planner(topology, 1e6, 0, racks).best(0.8).value());
      plans.emplace_back("one_exact_rack", Planner(topology, 1e6, 0, unequal).best(0.64).value());
      plans.emplace_back("one_exact_rack_in_pairs", Planner(topology, 1e6, 2, unequal).best(1.6).value());
    }
    for (const auto& [name, plan] : plans) {
      for (const Overlap overlap : {Overlap::kInLine, Overlap::kCombine}) {
        result.push_back({name + std::to_string(workers) + name_of(overlap), workers, plan, overlap});
      }
    }
    const auto& [name, plan] = plans.front();
    result.push_back({name + std::to_string(workers) + "layered", workers, plan, Overlap::kLayered});
  }
  return result;
}

double disagreement(const std::vector<at::Tensor>& replicas) {
  const at::Tensor all = at::stack(replicas).to(at::kDouble);
  return (all - all.mean(0)).square().sum().item<double>() / static_cast<double>(replicas.size());
}

class PredictionTest : public ::testing::TestWithParam<PredictedSetting> {};

// lr^2 * variance * S, measured on the replicas themselves and, without looking at them, by the library.
TEST_P(PredictionTest, IidNoiseDisagreesAsPredicted) {
  const PredictedSetting& setting = GetParam();
  constexpr double kLearningRate = 0.1;
  constexpr double kDeviation = 3;  // of each element of a gradient
  constexpr std::int64_t kSize = 8192;
  const auto cycle = static_cast<int>(setting.plan.rounds.size());
  const int settle = std::max(24, 3 * cycle);
  const int measured = std::max(24, 2 * cycle);

  std::vector<at::Tensor> replicas(static_cast<std::size_t>(setting.workers));
  double sum = 0;
  double estimated = 0;
  std::mutex mutex;
  SyncOptions options;
  options.plan = setting.plan;
  options.overlap = setting.overlap;
  run_ranks(setting.workers, [&](World& world) {
    at::Generator random = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(world.rank() + 17));
    const at::Tensor x = at::zeros({kSize}).requires_grad_();
    const at::NoGradGuard no_grad;
    replicas[static_cast<std::size_t>(world.rank())] = x;
    const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, network(setting.workers), options);
    for (int iteration = 0; iteration < settle + measured; ++iteration) {
      sync->before_forward();
      x.mutable_grad() = at::randn({kSize}, random) * kDeviation;
      sync->after_backward();
      x.add_(x.grad(), -kLearningRate);
      sync->after_step();
      sync->settle();
      if (iteration < settle) continue;
      world.barrier("before " + std::to_string(iteration));
      if (world.rank() == 0) sum += disagreement(replicas);
      world.barrier("after " + std::to_string(iteration));
      const std::lock_guard lock(mutex);
      estimated += sync->metrics().disagreement;
    }
  });
  // Of a replica of the mean size.
  const double workers_per_replica = static_cast<double>(setting.workers) / setting.plan.replica_count();
  const double unit = kLearningRate * kLearningRate * kDeviation * kDeviation * kSize / workers_per_replica;
  const bool misses_step = setting.overlap == Overlap::kCombine;
  const double extra = misses_step ? 1 - 1.0 / setting.plan.replica_count() : 0;
  const double predicted = unit * (setting.plan.mixing.steady_disagreement + extra);
  EXPECT_NEAR(sum / measured / predicted, 1, 0.05) << "measured on the replicas";
  EXPECT_NEAR(estimated / measured / setting.workers / predicted, 1, 0.05) << "estimated by the library";
}

INSTANTIATE_TEST_SUITE_P(Schedules, PredictionTest, ::testing::ValuesIn(settings()),
                         [](const auto& setting) { return setting.param.name; });

}  // namespace
}  // namespace dssync
