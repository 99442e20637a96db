// Averages of parameters and of gradients in few bits: all members have the same bits, rounding adds what was
// predicted, and what is remembered lets a run go on to the bit.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "dssync/collective/engine.h"
#include "dssync/comm/testing.h"
#include "dssync/planner/codec_error.h"
#include "dssync/planner/planner.h"
#include "dssync/sync/gradient_averages.h"
#include "dssync/sync/synchronizer.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using testing::run_ranks;

Topology coded_network(int workers) { return workers == 8 ? testing::racks(2, 4, 4, 1) : testing::flat(workers, 4); }

Group everyone_of(int size) {
  Group group;
  for (Rank rank = 0; rank < size; ++rank) group.push_back(rank);
  return group;
}

double distance_of(const std::vector<at::Tensor>& replicas) {
  const at::Tensor all = at::stack(replicas).to(at::kDouble);
  return (all - all.mean(0)).square().sum().item<double>() / static_cast<double>(replicas.size());
}

// Called after each iteration, while nobody changes anything.
using Look = std::function<void(int iteration, const std::vector<at::Tensor>& replicas)>;

struct NoisyRun {
  int workers = 4;
  SyncOptions options{};
  std::int64_t size = 5000;
  int iterations = 20;
  double start = 1;  // values of parameters in the beginning
};

// Noise of deviation 1 on every worker in each iteration.
void train_on_noise(const NoisyRun& run, const Look& look) {
  std::vector<at::Tensor> replicas(static_cast<std::size_t>(run.workers));
  run_ranks(run.workers, [&](World& world) {
    at::Generator random = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(world.rank() + 17));
    const at::Tensor x = at::full({run.size}, run.start);
    replicas[static_cast<std::size_t>(world.rank())] = x;
    const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, coded_network(run.workers), run.options);
    for (int iteration = 0; iteration < run.iterations; ++iteration) {
      sync->before_forward();
      sync->after_backward();
      x.add_(at::randn({run.size}, random));
      sync->after_step();
      sync->settle();
      world.barrier("before " + std::to_string(iteration));
      if (world.rank() == 0) look(iteration, replicas);
      world.barrier("after " + std::to_string(iteration));
    }
  });
}

Plan small_plan(Codec codec) {
  Plan plan;
  plan.rounds = {{"pairs", {{0, 1}, {2, 3}}}, {"three", {{1, 2, 3}, {0}}}, {"all", {{0, 1, 2, 3}}}};
  plan.mixing = measure_mixing(plan.rounds, 4);
  plan.codecs = Codecs(codec);
  return plan;
}

struct CodedSetting {
  Codec codec;
  Overlap overlap;
};

class CodedSyncTest : public ::testing::TestWithParam<CodedSetting> {};

TEST_P(CodedSyncTest, MembersOfAGroupHaveTheSameBits) {
  NoisyRun setting;
  setting.options.plan = small_plan(GetParam().codec);
  setting.options.overlap = GetParam().overlap;
  train_on_noise(setting, [&](int iteration, const std::vector<at::Tensor>& replicas) {
    for (const Group& group : setting.options.plan->rounds[static_cast<std::size_t>(iteration % 3)].groups) {
      for (const Rank rank : group) {
        EXPECT_TRUE(
            at::equal(replicas[static_cast<std::size_t>(rank)], replicas[static_cast<std::size_t>(group.front())]))
            << iteration;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Codecs, CodedSyncTest,
    ::testing::Values(CodedSetting{Codec::kFloat32, Overlap::kInLine}, CodedSetting{Codec::kBfloat16, Overlap::kInLine},
                      CodedSetting{Codec::kInt8, Overlap::kLayered}, CodedSetting{Codec::kInt4, Overlap::kInLine},
                      CodedSetting{Codec::kInt4, Overlap::kLayered}),
    [](const auto& setting) { return std::string(name_of(setting.param.codec)) + name_of(setting.param.overlap); });

TEST(CodedSyncTest, LayeredAveragesLeaveTheBitsOfAveragesInLine) {
  std::vector<at::Tensor> results;
  for (const Overlap overlap : {Overlap::kInLine, Overlap::kLayered}) {
    NoisyRun setting;
    setting.options.plan = small_plan(Codec::kInt4);
    setting.options.plan->shards = 3;
    setting.options.overlap = overlap;
    train_on_noise(setting, [&](int iteration, const std::vector<at::Tensor>& replicas) {
      if (iteration + 1 == setting.iterations) results.push_back(at::stack(replicas).clone());
    });
  }
  EXPECT_TRUE(at::equal(results[0], results[1]));
}

// Differences travel: however large values are, rounding adds what the noise asks for.
TEST(CodedSyncTest, ErrorsDoNotGrowWithTheValues) {
  std::vector<double> results;
  for (const double start : {0.0, 1000.0}) {
    double sum = 0;
    NoisyRun setting{.size = 20000, .iterations = 30, .start = start};
    setting.options.plan = small_plan(Codec::kInt4);
    setting.options.overlap = Overlap::kInLine;
    train_on_noise(setting, [&](int iteration, const std::vector<at::Tensor>& replicas) {
      if (iteration % 3 == 1) sum += distance_of(replicas);
    });
    results.push_back(sum);
  }
  EXPECT_NEAR(results[1] / results[0], 1, 0.01);
}

struct CodedPrediction {
  std::string name;
  int workers;
  Plan plan;
  Overlap overlap;
};

Plan halves_of(int workers) {
  Round nobody{"nobody", {}};
  Round halves{"halves", {{}, {}}};
  Round all{"all", {everyone_of(workers)}};
  for (Rank rank = 0; rank < workers; ++rank) {
    nobody.groups.push_back({rank});
    halves.groups[rank <= workers / 2 ? 0 : 1].push_back(rank);
  }
  Plan plan;
  plan.rounds = {halves, nobody, halves, halves, nobody, all};
  plan.shards = 6;
  plan.mixing = measure_mixing(plan.rounds, workers);
  return plan;
}

std::vector<CodedPrediction> coded_predictions() {
  std::vector<CodedPrediction> result;
  for (const int workers : {8, 13}) {
    // The planner's, and one by hand: a flat network needs no groups.
    const Plan plan = workers == 8 ? Planner(coded_network(workers), 1e6).best(0.5).value() : halves_of(workers);
    for (const Overlap overlap : {Overlap::kInLine, Overlap::kLayered, Overlap::kCombine}) {
      result.push_back({std::to_string(workers) + name_of(overlap), workers, plan, overlap});
    }
  }
  return result;
}

class CodedPredictionTest : public ::testing::TestWithParam<CodedPrediction> {};

// With the same noise, what is left beside float32 is the codec's.
TEST_P(CodedPredictionTest, RoundingAddsWhatWasPredicted) {
  const CodedPrediction& setting = GetParam();
  const auto cycle = static_cast<int>(setting.plan.rounds.size());
  const int settle = std::max(24, 3 * cycle);
  const int measured = std::max(24, 2 * cycle);
  const auto measure = [&](Codec codec) {
    NoisyRun noise{.workers = setting.workers, .size = 16384, .iterations = settle + measured};
    noise.options.plan = setting.plan;
    noise.options.plan->codecs = Codecs(codec);
    noise.options.overlap = setting.overlap;
    double sum = 0;
    train_on_noise(noise, [&](int iteration, const std::vector<at::Tensor>& replicas) {
      if (iteration >= settle) sum += distance_of(replicas);
    });
    return sum / measured / static_cast<double>(noise.size);
  };
  const Topology topology = coded_network(setting.workers);
  Lowering lowering;
  const double predicted =
      codec_disagreement(setting.plan.rounds, Replicas(topology), setting.plan.mixing.steady_disagreement,
                         [&](const Group& group) -> const Lowering& {
                           lowering = lower(group, topology, 16384 * 4, Codecs(Codec::kInt4));
                           return lowering;
                         });
  const double added = measure(Codec::kInt4) - measure(Codec::kFloat32);
  EXPECT_GT(predicted, 0);
  EXPECT_NEAR(added / predicted, 1, 0.2) << "added " << added << ", predicted " << predicted;
}

INSTANTIATE_TEST_SUITE_P(Schedules, CodedPredictionTest, ::testing::ValuesIn(coded_predictions()),
                         [](const auto& setting) { return "w" + setting.param.name; });

// A run that was saved and goes on ends with the same bits as one that was not.
TEST(CodedSyncTest, GoesOnFromItsState) {
  run_ranks(4, [&](World& world) {
    const auto noise = [&](int iteration) {
      return at::sin(at::arange(3000, at::kFloat).square() * 0.3 + iteration + 10 * world.rank());
    };
    SyncOptions options;
    options.plan = small_plan(Codec::kInt4);
    options.overlap = Overlap::kInLine;
    const auto iterate = [&](Synchronizer& sync, const at::Tensor& x, int iteration) {
      sync.before_forward();
      sync.after_backward();
      x.add_(noise(iteration));
      sync.after_step();
    };
    const at::Tensor x = at::ones({3000});
    const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, coded_network(4), options);
    for (int iteration = 0; iteration < 5; ++iteration) iterate(*sync, x, iteration);
    const SyncState state = sync->state();
    const at::Tensor again = at::zeros({3000});
    const auto resumed = make_synchronizer(world, {{{"x", again}}, {}, {}}, coded_network(4), options);
    again.copy_(x);
    resumed->load_state(state);
    for (int iteration = 5; iteration < 10; ++iteration) {
      iterate(*sync, x, iteration);
      iterate(*resumed, again, iteration);
      EXPECT_TRUE(at::equal(x, again)) << iteration;
    }
  });
}

// Workers without a common state take rank 0's values as reference, and do not fall apart.
TEST(CodedSyncTest, StateWithoutAReferenceIsReplacedByRankZeros) {
  std::vector<at::Tensor> replicas(4);
  run_ranks(4, [&](World& world) {
    SyncOptions options;
    options.plan = small_plan(Codec::kInt4);
    options.overlap = Overlap::kInLine;
    const at::Tensor x = at::zeros({3000});
    const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, coded_network(4), options);
    x.fill_(100 + world.rank());
    sync->load_state({.iteration = 0});
    for (int iteration = 0; iteration < 3; ++iteration) {
      sync->before_forward();
      sync->after_backward();
      sync->after_step();
    }
    replicas[static_cast<std::size_t>(world.rank())] = x;
  });
  for (const at::Tensor& x : replicas) {
    EXPECT_TRUE(at::equal(x, replicas.front()));
    EXPECT_NEAR(x.mean().item<double>(), 101.5, 0.3);
  }
}

TEST(CodedSyncTest, ConsolidatingIsExact) {
  std::vector<at::Tensor> replicas(4);
  run_ranks(4, [&](World& world) {
    SyncOptions options;
    options.plan = small_plan(Codec::kInt4);
    options.overlap = Overlap::kInLine;
    const at::Tensor x = at::zeros({1000});
    const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, coded_network(4), options);
    x.fill_(world.rank());
    sync->consolidate();
    EXPECT_TRUE(at::allclose(x, at::full({1000}, 1.5)));
    // The reference is where everyone is now: nothing is left to round.
    sync->before_forward();
    sync->after_backward();
    sync->after_step();
    EXPECT_TRUE(at::equal(x, at::full({1000}, x[0].item<float>())));
    replicas[static_cast<std::size_t>(world.rank())] = x;
  });
}

// Without a round of everyone differences grow: bfloat16 is the shortest that is used.
TEST(CodedSyncTest, PlansWithoutEveryoneUseBfloat16) {
  Plan plan;
  plan.rounds = {{"pairs", {{0, 1}, {2, 3}}}, {"others", {{0, 2}, {1, 3}}}};
  plan.mixing = measure_mixing(plan.rounds, 4);
  plan.codecs = Codecs(Codec::kInt4);
  run_ranks(4, [&](World& world) {
    SyncOptions options;
    options.plan = plan;
    options.overlap = Overlap::kInLine;
    const at::Tensor x = at::zeros({1024});
    const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, coded_network(4), options);
    sync->before_forward();
    sync->after_backward();
    sync->after_step();
    EXPECT_EQ(sync->metrics().bytes_sent, 2048);
  });
}

class CodedBspTest : public ::testing::TestWithParam<Method> {};

TEST_P(CodedBspTest, ReplicasStayEqualAndSendFewBytes) {
  std::vector<at::Tensor> replicas(4);
  run_ranks(4, [&](World& world) {
    const at::Tensor x = at::ones({4096}).requires_grad_();
    SyncOptions options{.method = GetParam(), .codec = CodecChoice{Codec::kInt4}};
    const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, coded_network(4), options);
    for (int iteration = 0; iteration < 5; ++iteration) {
      sync->before_forward();
      (x * at::sin(at::arange(4096, at::kFloat) + world.rank() + iteration)).sum().backward();
      sync->after_backward();
      const at::NoGradGuard no_grad;
      x.add_(x.grad(), -0.1);
      x.grad().zero_();
      sync->after_step();
      EXPECT_LT(sync->metrics().bytes_sent, 4096 * 4 * 2 * 0.14);
    }
    EXPECT_EQ(sync->state().tensors.size(), 1U);
    replicas[static_cast<std::size_t>(world.rank())] = x.detach();
  });
  for (const at::Tensor& x : replicas) EXPECT_TRUE(at::equal(x, replicas.front()));
}

INSTANTIATE_TEST_SUITE_P(Methods, CodedBspTest,
                         ::testing::Values(Method::kBspRing, Method::kBspHierarchical, Method::kPs),
                         [](const auto& method) { return std::to_string(static_cast<int>(method.param)); });

// Means over many iterations are right to a small part of what one iteration errs by.
TEST(CodedGradientsTest, WhatWasLostIsBroughtInLater) {
  constexpr int kWorkers = 4;
  constexpr int kIterations = 50;
  const Topology topology = coded_network(kWorkers);
  const auto gradient_of = [](Rank rank) { return at::sin(at::arange(1000, at::kFloat).square() + rank); };
  at::Tensor expected = at::zeros({1000});
  for (Rank rank = 0; rank < kWorkers; ++rank) expected += gradient_of(rank) / kWorkers;
  run_ranks(kWorkers, [&](World& world) {
    const std::vector<NamedTensor> parameters = {{"x", at::zeros({1000}).requires_grad_()}};
    const TensorSet set(parameters, Storage::kOwned);
    ChainBuilder builder(world, topology);
    builder.add(encoded(lower_to_ring(everyone_of(kWorkers), topology), topology, Codecs(Codec::kInt4)), kWorkers);
    Engine engine(explained_by(world), nullptr);
    GradientAverages averages(parameters, set.flats(), 1 << 20, std::make_shared<const Chain>(builder.build().front()),
                              engine);
    at::Tensor sum = at::zeros({1000});
    double once = 0;
    for (int iteration = 0; iteration < kIterations; ++iteration) {
      const at::Tensor& x = parameters.front().tensor;
      if (x.grad().defined()) x.grad().zero_();
      averages.begin(iteration);
      (x * gradient_of(world.rank())).sum().backward();
      averages.finish();
      require_done(engine.wait());
      const at::NoGradGuard no_grad;
      sum += x.grad();
      once = std::max(once, (x.grad() - expected).abs().max().item<double>());
    }
    const double mean = (sum / kIterations - expected).abs().max().item<double>();
    EXPECT_GT(once, 0.02);
    EXPECT_LT(mean, 0.02 * once * 4) << "without feedback it would be about " << once / std::sqrt(kIterations);
    std::vector<NamedTensor> saved;
    averages.save(saved);
    ASSERT_EQ(saved.size(), 1U);
    EXPECT_GT(saved.front().tensor.abs().max().item<double>(), 0);
  });
}

TEST(CodedGradientsTest, AGradientThatIsNoNumberIsForgotten) {
  const Topology topology = testing::flat(2);
  run_ranks(2, [&](World& world) {
    const std::vector<NamedTensor> parameters = {{"x", at::zeros({300}).requires_grad_()}};
    const TensorSet set(parameters, Storage::kOwned);
    ChainBuilder builder(world, topology);
    builder.add(encoded(lower_to_ring(everyone_of(2), topology), topology, Codecs(Codec::kInt8)), 2);
    Engine engine(explained_by(world), nullptr);
    GradientAverages averages(parameters, set.flats(), 1 << 20, std::make_shared<const Chain>(builder.build().front()),
                              engine);
    for (const float factor : {std::numeric_limits<float>::infinity(), 1.0F}) {
      const at::Tensor& x = parameters.front().tensor;
      if (x.grad().defined()) x.grad().zero_();
      averages.begin(0);
      (x * factor).sum().backward();
      averages.finish();
      require_done(engine.wait());
      EXPECT_EQ(x.grad().isfinite().all().item<bool>(), std::isfinite(factor));
    }
  });
}

}  // namespace
}  // namespace dssync
