// Every method through the four moments, with real gradients: what must hold for all of them.
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "dssync/base/error.h"
#include "dssync/comm/testing.h"
#include "dssync/planner/planner.h"
#include "dssync/sync/synchronizer.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using ::testing::HasSubstr;
using testing::run_ranks;

struct NetImpl : torch::nn::Module {
  NetImpl() {
    first = register_module("first", torch::nn::Linear(5, 7));
    norm = register_module("norm", torch::nn::BatchNorm1d(7));
    second = register_module("second", torch::nn::Linear(7, 3));
  }
  at::Tensor forward(const at::Tensor& x) { return second(at::relu(norm(first(x)))); }
  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(Net);

at::Tensor batch_of(int rank, std::int64_t iteration) {
  const at::Tensor position = at::arange(40, at::kFloat).view({8, 5});
  return at::sin(position * 1.3 + rank * 2.1 + static_cast<double>(iteration));
}

// Values that depend on nothing but the rank; all take over rank 0's.
void initialize(torch::nn::Module& net, int rank) {
  const at::NoGradGuard no_grad;
  double phase = rank;
  for (at::Tensor& parameter : net.parameters()) {
    parameter.copy_(at::sin(at::arange(parameter.numel(), at::kFloat) + phase).view(parameter.sizes()) * 0.5);
    phase += 0.3;
  }
}

// Trains a small net and returns its parameters and buffers, flattened.
at::Tensor train(World& world, const Topology& topology, const SyncOptions& options, std::int64_t iterations,
                 double momentum = 0.9) {
  Net net;
  initialize(*net, world.rank());
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(momentum));
  const auto sync = make_synchronizer(world, replica_of(*net, optimizer), topology, options);
  for (std::int64_t iteration = 0; iteration < iterations; ++iteration) {
    optimizer.zero_grad();
    sync->before_forward();
    net->forward(batch_of(world.rank(), iteration)).square().mean().backward();
    sync->after_backward();
    optimizer.step();
    sync->after_step();
    EXPECT_EQ(sync->iteration(), iteration + 1);
  }
  sync->consolidate();
  std::vector<at::Tensor> all;
  for (const at::Tensor& parameter : net->parameters()) all.push_back(parameter.detach().flatten());
  for (const at::Tensor& buffer : net->buffers()) all.push_back(buffer.flatten().to(at::kFloat));
  return at::cat(all);
}

class MethodsTest : public ::testing::TestWithParam<Method> {};

TEST_P(MethodsTest, ConsolidatedReplicasAreEqualBitByBit) {
  const Topology topology = testing::racks(2, 3, 4, 1);
  std::vector<at::Tensor> results(6);
  run_ranks(6, [&](World& world) {
    results[static_cast<std::size_t>(world.rank())] = train(world, topology, {.method = GetParam()}, 7);
  });
  for (const at::Tensor& result : results) {
    EXPECT_TRUE(at::isfinite(result).all().item<bool>());
    EXPECT_TRUE(at::equal(result, results.front()));
  }
}

// Means of parameters over iterations, for example. Rank r has r in one tensor and 2 r in the other.
TEST_P(MethodsTest, OtherTensorsCanBeAveragedExactly) {
  const Topology topology = testing::racks(2, 3, 4, 1);
  run_ranks(6, [&](World& world) {
    Net net;
    torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05));
    const auto sync = make_synchronizer(world, replica_of(*net, optimizer), topology, {.method = GetParam()});
    const at::Tensor own = at::full({7, 3}, static_cast<float>(world.rank()));
    const at::Tensor precise = at::full({2}, 2.0 * world.rank(), at::kDouble);
    sync->consolidate();
    const at::Tensor before = net->parameters().front().detach().clone();
    sync->average_everyone({{"own", own}, {"precise", precise}});
    EXPECT_TRUE(at::allclose(own, at::full({7, 3}, 2.5F)));
    EXPECT_TRUE(at::allclose(precise, at::full({2}, 5.0, at::kDouble)));
    EXPECT_TRUE(at::equal(net->parameters().front(), before));
  });
}

double tolerance(at::ScalarType type) { return type == at::kDouble ? 1e-12 : type == at::kFloat ? 1e-5 : 2e-2; }

at::Tensor step_of(int rank, int iteration, std::int64_t size) {
  return at::sin(at::arange(size, at::kDouble) * 0.9 + rank * 1.7 + iteration * 2.3);
}

// Whatever the method, every worker's steps count for one N-th of what all have in the end. In double precision:
at::Tensor mean_of_all_steps(int workers, int iterations, std::int64_t size) {
  at::Tensor sum = at::zeros({size}, at::kDouble);
  for (int rank = 0; rank < workers; ++rank) {
    for (int iteration = 0; iteration < iterations; ++iteration) sum += step_of(rank, iteration, size);
  }
  return sum / workers;
}

// Makes these steps as an optimizer does, and returns what came out.
at::Tensor make_steps(World& world, const Topology& topology, const SyncOptions& options, int iterations,
                      std::int64_t size, at::ScalarType type) {
  at::Tensor x = at::zeros({size}, type).requires_grad_();
  const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, topology, options);
  const at::NoGradGuard no_grad;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    sync->before_forward();
    x.mutable_grad() = step_of(world.rank(), iteration, size).to(type);
    sync->after_backward();
    x.add_(x.grad());
    sync->after_step();
  }
  sync->consolidate();
  return x.detach();
}

TEST_P(MethodsTest, EveryStepCountsForOneNth) {
  constexpr int kSteps = 5;
  for (const int workers : {2, 3, 5, 8}) {
    const Topology topology = workers == 8 ? testing::racks(2, 4, 4, 1) : testing::flat(workers);
    run_ranks(workers, [&](World& world) {
      SyncOptions options{.method = GetParam()};
      options.period = 2;
      options.bucket_bytes = 100;
      const bool has_shards = options.method == Method::kDsSync;
      if (has_shards) options.plan = Planner(topology, 1e6).best(0.5);
      for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf}) {
        for (const std::int64_t size : {1, 2, 13, 1009}) {
          for (const int shards : has_shards ? std::vector<int>{1, 3, 8} : std::vector<int>{1}) {
            if (has_shards) options.plan->shards = shards;
            const at::Tensor x = make_steps(world, topology, options, kSteps, size, type);
            const at::Tensor expected = mean_of_all_steps(workers, kSteps, size);
            EXPECT_LE((x.to(at::kDouble) - expected).abs().max().item<double>(), tolerance(type) * kSteps)
                << workers << " workers, " << size << " elements of " << c10::toString(type) << ", " << shards
                << " shards, rank " << world.rank();
          }
        }
      }
    });
  }
}

TEST_P(MethodsTest, WorkersWithDifferentNetworksAreTold) {
  run_ranks(4, [&](World& world) {
    const at::Tensor x = at::zeros({10}).requires_grad_();
    const Topology topology = testing::racks(2, 2, 4, world.rank() == 2 ? 2 : 1);
    const std::string message = testing::message_of<AgreementError>([&] {
      make_synchronizer(world, {{{"x", x}}, {}, {}}, topology, {.method = GetParam()});
    });
    EXPECT_THAT(message, HasSubstr("the workers differ in their network: rank 2 has"));
    EXPECT_THAT(message, HasSubstr("rack0 up"));
  });
}

TEST_P(MethodsTest, FrozenParametersAndMemoryOrder) {
  const Topology topology = testing::racks(2, 2, 4, 1);
  run_ranks(4, [&](World& world) {
    Net net;
    initialize(*net, world.rank());
    net->first->weight.requires_grad_(false);
    torch::optim::SGD optimizer(net->second->parameters(), torch::optim::SGDOptions(0.1));
    const auto sync = make_synchronizer(world, replica_of(*net, optimizer), topology, {.method = GetParam()});
    Net reference;
    initialize(*reference, 0);
    EXPECT_TRUE(at::equal(net->first->weight, reference->first->weight)) << "rank 0's stands for all";
    sync->consolidate();

    const at::Tensor plain = at::zeros({2, 3, 4, 5}).requires_grad_();
    const at::Tensor last = at::zeros({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
    const std::string message = testing::message_of<AgreementError>([&] {
      make_synchronizer(world, {{{"x", world.rank() == 3 ? last : plain}}, {}, {}}, topology, {.method = GetParam()});
    });
    EXPECT_THAT(message, HasSubstr("rank 3 has 'x Float [2, 3, 4, 5] with strides [60, 1, 15, 3]'"));
  });
}

TEST_P(MethodsTest, WorksAlone) {
  run_ranks(1, [&](World& world) {
    EXPECT_TRUE(at::isfinite(train(world, testing::flat(1), {.method = GetParam()}, 3)).all().item<bool>());
  });
}

TEST_P(MethodsTest, ADifferentModelIsNamedEverywhere) {
  std::mutex mutex;
  int informed = 0;
  EXPECT_THROW(
      run_ranks(3,
                [&](World& world) {
                  torch::nn::Linear net(world.rank() == 1 ? 4 : 5, 2);
                  torch::optim::SGD optimizer(net->parameters(), 0.1);
                  try {
                    make_synchronizer(world, replica_of(*net, optimizer), testing::flat(3), {.method = GetParam()});
                  } catch (const AgreementError& error) {
                    const std::lock_guard lock(mutex);
                    informed += std::string(error.what()).find("rank 1 has 'weight Float [2, 4]'") != std::string::npos;
                    throw;
                  }
                }),
      AgreementError);
  EXPECT_EQ(informed, 3);
}

TEST_P(MethodsTest, ATopologyOfAnotherSizeIsRefused) {
  run_ranks(2, [&](World& world) {
    torch::nn::Linear net(2, 2);
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    EXPECT_THROW(make_synchronizer(world, replica_of(*net, optimizer), testing::flat(3), {.method = GetParam()}),
                 InputError);
  });
}

INSTANTIATE_TEST_SUITE_P(All, MethodsTest, ::testing::ValuesIn(all_methods()), [](const auto& setting) {
  std::string name = name_of(setting.param);
  std::erase(name, '-');
  return name;
});

TEST(ExactMethodsTest, AllTrainTheSameModel) {
  const Topology topology = testing::racks(2, 2, 4, 1);
  std::vector<at::Tensor> results(3);
  const std::vector<Method> methods = {Method::kBspRing, Method::kBspHierarchical, Method::kPs};
  for (std::size_t index = 0; index < methods.size(); ++index) {
    run_ranks(4, [&](World& world) {
      const at::Tensor result = train(world, topology, {.method = methods[index], .bucket_bytes = 64}, 6);
      if (world.rank() == 0) results[index] = result;
    });
  }
  EXPECT_TRUE(at::allclose(results[0], results[1], 1e-4, 1e-6));
  EXPECT_TRUE(at::allclose(results[0], results[2], 1e-4, 1e-6));
}

// Averaging parameters after a plain step is averaging gradients; so these follow the exact methods as well.
TEST(ExactMethodsTest, AveragesOfEveryoneInEveryIterationTrainTheSameModelWithoutMomentum) {
  const Topology topology = testing::racks(2, 2, 4, 1);
  std::vector<at::Tensor> results(4);
  const std::vector<SyncOptions> options = {{.method = Method::kBspRing},
                                            {.method = Method::kDsSync, .disagreement = 0},
                                            {.method = Method::kLocalSgd, .period = 1},
                                            {.method = Method::kSsp, .staleness = 0}};
  for (std::size_t index = 0; index < options.size(); ++index) {
    run_ranks(4, [&](World& world) {
      const at::Tensor result = train(world, topology, options[index], 6, 0);
      if (world.rank() == 0) results[index] = result;
    });
  }
  for (const at::Tensor& result : results) EXPECT_TRUE(at::allclose(result, results[0], 1e-4, 1e-6));
}

TEST(MethodNamesTest, GoBothWays) {
  for (const Method method : all_methods()) EXPECT_EQ(method_from_name(name_of(method)), method);
  EXPECT_THROW(method_from_name("bsp"), InputError);
  for (const auto state : {StateTreatment::kLocal, StateTreatment::kAveraged, StateTreatment::kRotating}) {
    EXPECT_EQ(state_treatment_from_name(name_of(state)), state);
  }
  EXPECT_THROW(state_treatment_from_name("shared"), InputError);
}

TEST(LossTest, AWorkerThatIsLostWhileValuesAreHandedOnIsNamedAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  const Topology topology = testing::racks(2, 2, 4, 1);
  const std::vector<std::string> messages = testing::run_ranks_losing(
      2, "broadcast", 4, [&](World& world) { train(world, topology, {}, 1); });
  for (const std::size_t rank : {0u, 1u, 3u}) EXPECT_THAT(messages[rank], HasSubstr("rank 2 failed: lost its data"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << "the timeout is 60 s";
}

}  // namespace
}  // namespace dssync
