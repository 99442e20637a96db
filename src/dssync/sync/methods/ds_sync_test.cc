// ds-sync against a simulation with plain vectors: slices, state, warm-up, overlap.
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/collective/program/schedule_program.h"
#include "dssync/comm/testing.h"
#include "dssync/sync/synchronizer.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using ::testing::HasSubstr;
using testing::run_ranks;
using Vectors = std::vector<at::Tensor>;  // one per worker

// Pairs, other pairs, everyone, nobody: rounds of different sizes.
Schedule mixed_cycle() {
  return {{"pairs", {{0, 1}, {2, 3}, {4, 5}}},
          {"uneven", {{0, 2, 4}, {1, 3}, {5}}},
          {"all", {{0, 1, 2, 3, 4, 5}}},
          {"nobody", {{0}, {1}, {2}, {3}, {4}, {5}}}};
}

Plan plan_of(const Schedule& schedule, int shards) {
  Plan plan;
  plan.rounds = schedule;
  plan.shards = shards;
  int workers = 0;
  for (const Group& group : schedule.front().groups) workers += static_cast<int>(group.size());
  plan.mixing = measure_mixing(schedule, workers);
  return plan;
}

at::Tensor noise(int rank, std::int64_t iteration, std::int64_t size) {
  return at::sin(at::arange(size, at::kDouble) * (0.3 + rank) + static_cast<double>(iteration) * 1.9);
}

void average_in_place(Vectors& vectors, const Schedule& schedule, const std::vector<ScheduledSlice>& slices) {
  for (const ScheduledSlice& slice : slices) {
    for (const Group& group : schedule[slice.round].groups) {
      at::Tensor sum = at::zeros({slice.end - slice.begin}, at::kDouble);
      for (const Rank rank : group)
        sum += vectors[static_cast<std::size_t>(rank)].narrow(0, slice.begin, slice.end - slice.begin);
      sum /= static_cast<double>(group.size());
      for (const Rank rank : group) {
        vectors[static_cast<std::size_t>(rank)].narrow(0, slice.begin, slice.end - slice.begin).copy_(sum);
      }
    }
  }
}

struct DsSyncSetting {
  std::int64_t size;
  int shards;
  Overlap overlap;
  int warmup;
};

class DsSyncTest : public ::testing::TestWithParam<DsSyncSetting> {};

constexpr std::int64_t kIterations = 11;

// The same thing with plain vectors.
Vectors simulate(const DsSyncSetting& setting) {
  const Schedule schedule = mixed_cycle();
  const ScheduleProgram program(schedule, setting.shards);
  const bool combines = setting.overlap == Overlap::kCombine;
  Vectors x(6);
  for (at::Tensor& vector : x) vector = at::zeros({setting.size}, at::kDouble);
  for (std::int64_t iteration = 0; iteration < kIterations; ++iteration) {
    Vectors target;
    for (std::size_t rank = 0; rank < 6; ++rank) {
      const at::Tensor step = noise(static_cast<int>(rank), iteration, setting.size);
      target.push_back(combines ? x[rank].clone() : x[rank] + step);
    }
    const auto slices = iteration < setting.warmup ? std::vector<ScheduledSlice>{{0, setting.size, 2}}
                                                   : program.slices(setting.size, iteration);
    average_in_place(target, schedule, slices);
    for (std::size_t rank = 0; rank < 6; ++rank) {
      x[rank] = target[rank];
      if (combines) x[rank] = x[rank] + noise(static_cast<int>(rank), iteration, setting.size);
    }
  }
  return x;
}

TEST_P(DsSyncTest, FollowsTheSimulation) {
  const DsSyncSetting setting = GetParam();
  const Vectors expected = simulate(setting);
  SyncOptions options;
  options.plan = plan_of(mixed_cycle(), setting.shards);
  options.overlap = setting.overlap;
  options.warmup_iterations = setting.warmup;
  const Topology topology = testing::racks(2, 3, 4, 1);
  run_ranks(6, [&](World& world) {
    const at::Tensor x = at::zeros({setting.size}, at::kDouble);
    const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, topology, options);
    for (std::int64_t iteration = 0; iteration < kIterations; ++iteration) {
      sync->before_forward();
      sync->after_backward();
      x.add_(noise(world.rank(), iteration, setting.size));
      sync->after_step();
    }
    sync->settle();
    EXPECT_LT((x - expected[static_cast<std::size_t>(world.rank())]).abs().max().item<double>(), 1e-12)
        << "rank " << world.rank();
  });
}

std::vector<DsSyncSetting> ds_sync_settings() {
  std::vector<DsSyncSetting> settings = {{1, 1, Overlap::kInLine, 0},         {1, 4, Overlap::kInLine, 0},
                                         {3, 4, Overlap::kInLine, 0},         {1009, 1, Overlap::kInLine, 0},
                                         {1009, 4, Overlap::kInLine, 0},      {1009, 7, Overlap::kInLine, 3},
                                         {100'003, 4, Overlap::kInLine, 0},   {1, 4, Overlap::kCombine, 0},
                                         {1009, 1, Overlap::kCombine, 0},   {1009, 4, Overlap::kCombine, 2},
                                         {100'003, 8, Overlap::kCombine, 0}};
  for (std::size_t index = 0; index < 7; ++index) {
    settings.push_back(settings[index]);
    settings.back().overlap = Overlap::kLayered;
  }
  return settings;
}

INSTANTIATE_TEST_SUITE_P(Settings, DsSyncTest, ::testing::ValuesIn(ds_sync_settings()), [](const auto& setting) {
  return "size" + std::to_string(setting.param.size) + "shards" + std::to_string(setting.param.shards) +
         name_of(setting.param.overlap) + "warmup" + std::to_string(setting.param.warmup);
});

// Momentum that averages of the state leave alone, average with the parameters, or average in turns.
class StateTest : public ::testing::TestWithParam<StateTreatment> {};

TEST_P(StateTest, IsTreatedAsAsked) {
  const StateTreatment treatment = GetParam();
  const Schedule schedule = mixed_cycle();
  constexpr std::int64_t kSize = 101;
  constexpr int kPeriod = 3;
  SyncOptions options;
  options.plan = plan_of(schedule, 4);
  options.state = treatment;
  options.state_period = kPeriod;

  const ScheduleProgram program(schedule, 4);
  Vectors expected(6);
  for (at::Tensor& vector : expected) vector = at::zeros({kSize}, at::kDouble);
  for (std::int64_t iteration = 0; iteration < kIterations; ++iteration) {
    for (std::size_t rank = 0; rank < 6; ++rank) expected[rank] += noise(static_cast<int>(rank), iteration, kSize);
    if (treatment == StateTreatment::kAveraged) average_in_place(expected, schedule, program.slices(kSize, iteration));
    if (treatment == StateTreatment::kRotating) {
      average_in_place(expected, schedule, program.slices(kSize, iteration, kPeriod));
    }
  }

  const Topology topology = testing::racks(2, 3, 4, 1);
  run_ranks(6, [&](World& world) {
    const at::Tensor x = at::zeros({kSize}, at::kDouble);
    at::Tensor momentum;
    Replica replica{{{"x", x}}, {}, [&momentum, &x]() -> std::vector<OptimizerState> {
                      if (!momentum.defined()) return {};
                      return {{"momentum", {{"x", momentum}}}};
                    }};
    const auto sync = make_synchronizer(world, replica, topology, options);
    for (std::int64_t iteration = 0; iteration < kIterations; ++iteration) {
      sync->before_forward();
      sync->after_backward();
      if (!momentum.defined()) momentum = at::zeros({kSize}, at::kDouble);  // as optimizers do, in their first step
      momentum.add_(noise(world.rank(), iteration, kSize));
      sync->after_step();
    }
    EXPECT_LT((momentum - expected[static_cast<std::size_t>(world.rank())]).abs().max().item<double>(), 1e-12);
  });
}

INSTANTIATE_TEST_SUITE_P(All, StateTest,
                         ::testing::Values(StateTreatment::kLocal, StateTreatment::kAveraged,
                                           StateTreatment::kRotating));

TEST(DsSyncPlanTest, IsTheSameOnEveryWorkerOrRefused) {
  const Topology topology = testing::racks(2, 3, 4, 1);
  run_ranks(6, [&](World& world) {
    Schedule schedule = mixed_cycle();
    if (world.rank() == 4) std::swap(schedule[0], schedule[1]);
    SyncOptions options;
    options.plan = plan_of(schedule, 4);
    const at::Tensor x = at::zeros({10});
    const std::string message = testing::message_of<AgreementError>([&] {
      make_synchronizer(world, {{{"x", x}}, {}, {}}, topology, options);
    });
    EXPECT_THAT(message, HasSubstr("the workers differ in their plan: rank 4 has")) << "rank " << world.rank();
  });
}

TEST(DsSyncInFlightTest, DestroyedInTheMiddleOfAnAverage) {
  const Topology topology = testing::racks(2, 3, 4, 1);
  SyncOptions options;
  options.plan = plan_of(mixed_cycle(), 4);
  options.overlap = Overlap::kCombine;
  run_ranks(6, [&](World& world) {
    const at::Tensor x = at::full({100'000}, static_cast<double>(world.rank()));
    const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, topology, options);
    sync->before_forward();
  });
}

TEST(DsSyncInFlightTest, WhatIsDroppedConcernsOneWorkerAndOneIteration) {
  SyncOptions options;
  options.plan = plan_of({mixed_cycle()[2]}, 1);
  options.overlap = Overlap::kCombine;
  run_ranks(6, [&](World& world) {
    const at::Tensor x = at::zeros({10}, at::kDouble);
    const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, testing::racks(2, 3, 4, 1), options);
    const auto value_after = [&](const std::function<void()>& step) {
      sync->before_forward();
      sync->after_backward();
      step();
      sync->after_step();
      return x.mean().item<double>();
    };
    const bool drops = world.rank() == 2;
    EXPECT_EQ(value_after([&] { x.add_(world.rank() + 1); }), world.rank() + 1);
    EXPECT_EQ(value_after([&] {
                if (drops) x.fill_(96.5);
                if (drops) sync->drop_average();
              }),
              drops ? 96.5 : 3.5);
    sync->drop_average();  // none is under way
    EXPECT_EQ(value_after([] {}), 19);
  });
}

// A parameter without a gradient has no momentum yet: on one worker in the first step, on all in another case.
TEST(DsSyncStateTest, IsAdoptedWhenAllHaveIt) {
  SyncOptions options;
  options.plan = plan_of({{"all", {{0, 1, 2}}}}, 1);
  options.state = StateTreatment::kAveraged;
  run_ranks(3, [&](World& world) {
    std::map<std::string, at::Tensor> momentum;
    const at::Tensor x = at::zeros({4});
    const at::Tensor y = at::zeros({4});
    const auto state = [&momentum] {
      OptimizerState kind{"momentum", {}};
      for (const auto& [name, tensor] : momentum) kind.tensors.push_back({name, tensor});
      return std::vector<OptimizerState>{kind};
    };
    const auto sync = make_synchronizer(world, {{{"x", x}, {"y", y}}, {}, state}, testing::flat(3), options);
    const auto iterate = [&](std::vector<std::string> used) {
      sync->before_forward();
      sync->after_backward();
      for (const std::string& name : used) {
        if (!momentum.contains(name)) momentum[name] = at::zeros({4});
        momentum[name].fill_(world.rank());
      }
      sync->after_step();
    };
    iterate(world.rank() == 1 ? std::vector<std::string>{"x"} : std::vector<std::string>{"x", "y"});
    EXPECT_TRUE(at::equal(momentum["x"], at::ones({4}))) << "all have it: " << momentum["x"];
    if (world.rank() == 2) {
      EXPECT_TRUE(at::equal(momentum["y"], at::full({4}, 2.0))) << "rank 1 has none yet";
    }
    iterate({"x", "y"});
    EXPECT_TRUE(at::equal(momentum["y"], at::ones({4}))) << "now all have it: " << momentum["y"];
  });
}

// Rank 0 alone has seen a gradient of this row: what the others take from it is more than its decay leaves.
TEST(DsSyncStateTest, SquaresStayAboveZeroWhereOverlapped) {
  SyncOptions options;
  options.plan = plan_of({{"all", {{0, 1, 2}}}}, 1);
  options.state = StateTreatment::kAveraged;
  options.overlap = Overlap::kCombine;
  run_ranks(3, [&](World& world) {
    const at::Tensor x = at::zeros({1});
    const at::Tensor squares = at::full({1}, world.rank() == 0 ? 1.0 : 0.0);
    const auto state = [&squares] { return std::vector<OptimizerState>{{"exp_avg_sq", {{"x", squares}}}}; };
    const auto sync = make_synchronizer(world, {{{"x", x}}, {}, state}, testing::flat(3), options);
    sync->before_forward();
    sync->after_backward();
    squares.mul_(0.5);  // 0.5 + (1/3 - 1) < 0 at rank 0
    sync->after_step();
    EXPECT_NEAR(squares.item<double>(), world.rank() == 0 ? 0.0 : 1.0 / 3, 1e-6);
  });
}

TEST(DsSyncPlanTest, ComesFromTheTopology) {
  const Topology topology = testing::racks(2, 2, 4, 1);
  run_ranks(4, [&](World& world) {
    const at::Tensor x = at::zeros({1000});
    const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, topology, {.disagreement = 0.5});
    ASSERT_NE(sync->plan(), nullptr);
    EXPECT_LE(sync->plan()->mixing.steady_disagreement, 0.5);
    EXPECT_GT(sync->plan()->rounds.size(), 1U);
    const auto exact = make_synchronizer(world, {{{"x", x}}, {}, {}}, topology, {.disagreement = 0});
    EXPECT_EQ(exact->plan()->rounds.size(), 1U);
  });
}

TEST(DsSyncPlanTest, ALimitThatGroupsCannotMeetIsRefused) {
  const Topology topology = testing::flat(5);
  run_ranks(5, [&](World& world) {
    const at::Tensor x = at::zeros({1000});
    EXPECT_THROW(make_synchronizer(world, {{{"x", x}}, {}, {}}, topology, {.disagreement = 0, .group_limit = 2}),
                 InputError);
  });
}

// What a run with interruptions after every third iteration reports, or one without; with borrowed storage or owned.
struct Outcome {
  std::vector<double> disagreements;
  at::Tensor values;
};

Outcome train_with(const SyncOptions& options, Storage storage, bool is_interrupted) {
  const Topology topology = testing::racks(2, 3, 4, 1);
  Outcome outcome;
  run_ranks(6, [&](World& world) {
    const at::Tensor x = at::zeros({40}, at::kDouble);
    const at::Tensor momentum = at::zeros({40}, at::kDouble);
    Replica replica{{{"x", x}}, {}, [&] {
                      return std::vector<OptimizerState>{{"momentum_buffer", {{"x", momentum}}}};
                    }};
    replica.storage = storage;
    auto sync = make_synchronizer(world, replica, topology, options);
    std::vector<double> disagreements;
    for (int iteration = 0; iteration < 12; ++iteration) {
      if (is_interrupted && iteration % 3 == 2) {
        const SyncState state = sync->state();
        const at::Tensor values = x.clone();
        const at::Tensor momenta = momentum.clone();
        sync.reset();
        sync = make_synchronizer(world, replica, topology, options);
        x.copy_(values);
        momentum.copy_(momenta);
        sync->load_state(state);
      }
      sync->before_forward();
      sync->after_backward();
      momentum.mul_(0.5).add_(noise(world.rank(), iteration, 40));
      x.add_(momentum);
      sync->after_step();
      sync->settle();
      disagreements.push_back(sync->metrics().disagreement);
    }
    if (world.rank() == 0) outcome = {disagreements, x.clone()};
  });
  return outcome;
}

class DsSyncStateTest : public ::testing::TestWithParam<Overlap> {};

TEST_P(DsSyncStateTest, AnInterruptedRunReportsWhatAnUninterruptedOneDoes) {
  SyncOptions options;
  options.plan = plan_of(mixed_cycle(), 4);
  options.overlap = GetParam();
  options.state = StateTreatment::kAveraged;
  const Outcome whole = train_with(options, Storage::kOwned, false);
  const Outcome resumed = train_with(options, Storage::kOwned, true);
  EXPECT_TRUE(at::equal(whole.values, resumed.values));
  EXPECT_EQ(whole.disagreements, resumed.disagreements);
}

TEST_P(DsSyncStateTest, BorrowedTensorsGetTheValuesThatOwnedOnesGet) {
  SyncOptions options;
  options.plan = plan_of(mixed_cycle(), 4);
  options.overlap = GetParam();
  const Outcome owned = train_with(options, Storage::kOwned, false);
  const Outcome borrowed = train_with(options, Storage::kBorrowed, false);
  EXPECT_TRUE(at::equal(owned.values, borrowed.values));
  EXPECT_EQ(owned.disagreements, borrowed.disagreements);
}

INSTANTIATE_TEST_SUITE_P(Modes, DsSyncStateTest,
                         ::testing::Values(Overlap::kInLine, Overlap::kLayered, Overlap::kCombine),
                         [](const auto& setting) { return name_of(setting.param); });

TEST(DsSyncResumeTest, GoesOnInTheCycle) {
  const Topology topology = testing::racks(2, 3, 4, 1);
  SyncOptions options;
  options.plan = plan_of(mixed_cycle(), 1);
  run_ranks(6, [&](World& world) {
    const at::Tensor x = at::full({4}, static_cast<double>(world.rank()), at::kDouble);
    const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, topology, options);
    x.fill_(world.rank());
    sync->load_state({.iteration = 6});  // round 2 of the cycle: everyone
    sync->before_forward();
    sync->after_backward();
    sync->after_step();
    EXPECT_EQ(sync->iteration(), 7);
    EXPECT_TRUE(at::allclose(x, at::full({4}, 2.5, at::kDouble)));
  });
}

}  // namespace
}  // namespace dssync
