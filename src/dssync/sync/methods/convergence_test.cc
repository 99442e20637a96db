// The average model of ds-sync follows that of BSP: exactly where gradients are linear, closely where they are not.
#include <functional>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "dssync/comm/testing.h"
#include "dssync/sync/synchronizer.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

constexpr int kReplicas = 8;
constexpr std::int64_t kLength = 64;

using Gradient = std::function<at::Tensor(const at::Tensor&)>;

at::Tensor start() { return at::linspace(-2, 2, kLength, at::kDouble); }

at::Generator noise_of(int rank) {
  return at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(100 + rank));
}

// The mean of the replicas after training with the real runtime, before any consolidation.
at::Tensor mean_of_ds_sync(const Gradient& gradient, double learning_rate, double deviation, int iterations,
                           Overlap overlap) {
  std::vector<at::Tensor> replicas(kReplicas);
  const Topology topology = testing::racks(2, 4, 4, 1);
  testing::run_ranks(kReplicas, [&](World& world) {
    at::Generator random = noise_of(world.rank());
    const at::Tensor x = start();
    const double missed = overlap == Overlap::kCombine ? 1 - 1.0 / kReplicas : 0;
    const auto sync =
        make_synchronizer(world, {{{"x", x}}, {}, {}}, topology, {.disagreement = 0.5 + missed, .overlap = overlap});
    for (int iteration = 0; iteration < iterations; ++iteration) {
      sync->before_forward();
      const at::Tensor step = gradient(x) + deviation * at::randn({kLength}, random, at::kDouble);
      sync->after_backward();
      x.sub_(step, learning_rate);
      sync->after_step();
    }
    replicas[static_cast<std::size_t>(world.rank())] = x;
  });
  return at::stack(replicas).mean(0);
}

at::Tensor model_of_bsp(const Gradient& gradient, double learning_rate, double deviation, int iterations) {
  std::vector<at::Generator> random;
  for (int rank = 0; rank < kReplicas; ++rank) random.push_back(noise_of(rank));
  at::Tensor x = start();
  for (int iteration = 0; iteration < iterations; ++iteration) {
    at::Tensor noise = at::zeros({kLength}, at::kDouble);
    for (at::Generator& generator : random) noise += at::randn({kLength}, generator, at::kDouble);
    x = x - learning_rate * (gradient(x) + deviation * noise / kReplicas);
  }
  return x;
}

class ConvergenceTest : public ::testing::TestWithParam<Overlap> {};

TEST_P(ConvergenceTest, OnAQuadraticTheMeanIsThatOfBsp) {
  const at::Tensor curvature = at::linspace(0.05, 1.5, kLength, at::kDouble);
  const Gradient gradient = [curvature](const at::Tensor& x) { return curvature * x; };
  const at::Tensor bsp = model_of_bsp(gradient, 0.2, 1, 60);
  const at::Tensor mean = mean_of_ds_sync(gradient, 0.2, 1, 60, GetParam());
  EXPECT_LT((mean - bsp).abs().max().item<double>(), 1e-12);
}

// f(x) = sum x^2 / (1 + x^2): two wells of negative curvature around a convex middle.
TEST_P(ConvergenceTest, OnANonConvexProblemTheMeanFollowsBsp) {
  const Gradient gradient = [](const at::Tensor& x) { return 2 * x / (1 + x.square()).square(); };
  const auto loss = [](const at::Tensor& x) { return (x.square() / (1 + x.square())).sum().item<double>(); };
  const at::Tensor bsp = model_of_bsp(gradient, 0.05, 0.5, 80);
  const at::Tensor mean = mean_of_ds_sync(gradient, 0.05, 0.5, 80, GetParam());
  EXPECT_LT(loss(bsp), 0.5 * loss(start())) << "the problem is being solved at all";
  EXPECT_NEAR(loss(mean) / loss(bsp), 1, 0.02);
  EXPECT_LT((mean - bsp).norm().item<double>(), 0.02 * start().norm().item<double>());
}

INSTANTIATE_TEST_SUITE_P(Modes, ConvergenceTest, ::testing::Values(Overlap::kInLine, Overlap::kCombine),
                         [](const auto& setting) { return name_of(setting.param); });

}  // namespace
}  // namespace dssync
