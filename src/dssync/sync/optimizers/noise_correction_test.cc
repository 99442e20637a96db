#include "dssync/sync/optimizers/noise_correction.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>

namespace dssync {
namespace {

// The formula of docs/convergence.md, in double precision: how much of the second moment everyone's mean would have.
double part_of_block(const at::Tensor& m, const at::Tensor& v, const AdamStep& step, int replicas) {
  const double old = std::pow(step.beta1, step.count);
  const double signal = (m.to(at::kDouble) / (1 - old)).square().sum().item<double>();
  const double seen = (v.to(at::kDouble) / (1 - std::pow(step.beta2, step.count))).sum().item<double>();
  const double of_mean = (1 - step.beta1) / (1 + step.beta1) * (1 + old) / (1 - old);
  const double share = std::clamp((signal / seen - of_mean) / (1 - of_mean), 0.0, 1.0);
  return 1.0 / replicas + (1 - 1.0 / replicas) * share;
}

double corrected_step(double m, double v, const AdamStep& step, double part) {
  const double mean = m / (1 - std::pow(step.beta1, step.count));
  const double seen = v / (1 - std::pow(step.beta2, step.count));
  return -step.learning_rate * mean / (std::sqrt(part * seen) + step.epsilon);
}

double plain_step(double m, double v, const AdamStep& step) { return corrected_step(m, v, step, 1); }

AdamStep step_of(const at::Tensor& m, const at::Tensor& v, at::ScalarType type = at::kFloat) {
  return {.parameter = at::zeros_like(m, at::TensorOptions().dtype(type)),
          .first_moment = m,
          .second_moment = v,
          .learning_rate = 3e-3,
          .beta1 = 0.9,
          .beta2 = 0.95,
          .epsilon = 1e-8,
          .count = 7};
}

// Two whole blocks and a part of one, with more and less signal.
TEST(NoiseCorrectionTest, MakesTheStepThatEveryonesSecondMomentWouldHaveGiven) {
  const at::Tensor place = at::arange(150, at::kFloat);
  const at::Tensor m = at::sin(place * 1.7) * 0.01 * (1 + place);
  const at::Tensor v = m.square() * 0.2 + 0.05 + 0.02 * at::cos(place);
  const AdamStep step = step_of(m, v);
  NoiseCorrection(8).apply({step});
  for (std::int64_t i = 0; i < m.numel(); ++i) {
    const std::int64_t begin = i / 64 * 64;
    const std::int64_t size = std::min<std::int64_t>(64, m.numel() - begin);
    const double part = part_of_block(m.narrow(0, begin, size), v.narrow(0, begin, size), step, 8);
    const auto mean = m[i].item<double>();
    const auto square = v[i].item<double>();
    const double expected = corrected_step(mean, square, step, part) - plain_step(mean, square, step);
    EXPECT_NEAR(step.parameter[i].item<double>(), expected, 6e-3 * (1e-5 + std::abs(expected))) << i;
  }
}

TEST(NoiseCorrectionTest, KeepsZerosAndBlocksThatSawNothing) {
  const AdamStep step = step_of(at::zeros({100}, at::kFloat), at::zeros({100}, at::kFloat));
  NoiseCorrection(8).apply({step});
  EXPECT_TRUE(step.parameter.equal(at::zeros({100})));
}

TEST(NoiseCorrectionTest, LeavesStepsWithoutNoiseAlone) {
  const at::Tensor m = at::tensor({0.5, -0.25, 1.0}, at::kFloat);
  AdamStep step = step_of(m, m.square());
  step.count = 1e6;  // the moments of a gradient that never changes
  NoiseCorrection(8).apply({step});
  EXPECT_LT(step.parameter.abs().max().item<double>(), 1e-7);
}

TEST(NoiseCorrectionTest, LengthensAStepOfNoiseAloneByTheRootOfTheReplicas) {
  const at::Tensor m = at::full({4}, 1e-6, at::kFloat);
  const AdamStep step = step_of(m, at::ones({4}, at::kFloat));
  NoiseCorrection(16).apply({step});
  const double plain = plain_step(1e-6, 1, step);
  EXPECT_NEAR(step.parameter[0].item<double>() / plain, std::sqrt(16.0) - 1, 2e-2);
}

// There the optimizer divides by epsilon: its step is linear in the gradient, and needs no correction.
TEST(NoiseCorrectionTest, LeavesStepsAloneThatEpsilonDominates) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    AdamStep step = step_of(at::full({70}, 1e-4, type), at::full({70}, 1e-6, type), type);
    step.epsilon = 1;
    NoiseCorrection(8).apply({step});
    EXPECT_LT(step.parameter.abs().max().item<double>(), 1e-4 * 3e-3 * 1e-4);
  }
}

// One value that epsilon concerns has all of its neighbours go the longer way, to the same end.
TEST(NoiseCorrectionTest, AValueNearEpsilonDoesNotConcernItsNeighbours) {
  const at::Tensor place = at::arange(3000, at::kFloat);
  const at::Tensor m = at::sin(place * 1.7) * 0.1;
  const at::Tensor v = m.square() * 0.2 + 0.05;
  const AdamStep far = step_of(m, v);
  NoiseCorrection(8).apply({far});
  at::Tensor small_m = m.clone();
  at::Tensor small_v = v.clone();
  small_m[1500] = 1e-11;
  small_v[1500] = 1e-20;
  const AdamStep near = step_of(small_m, small_v);
  NoiseCorrection(8).apply({near});
  // 1e-11 / 1e-8 is what Adam steps there, times the rate; far less than that is corrected.
  EXPECT_LT(std::abs(near.parameter[1500].item<double>()), 1e-3 * 3e-3 * 1e-2);
  at::Tensor others = (near.parameter - far.parameter).abs();
  others[1500] = 0;
  const std::int64_t block = 1500 / 64 * 64;  // has another estimate
  others.narrow(0, block, 64).zero_();
  EXPECT_LE((others / (far.parameter.abs() + 1e-9)).max().item<double>(), 2e-3);
}

TEST(NoiseCorrectionTest, DoesNotDependOnTheNumberOfThreads) {
  const at::Tensor place = at::arange(200'001, at::kFloat);
  const at::Tensor m = at::sin(place * 1.7) * 0.1;
  at::Tensor v = m.square() * 0.2 + 0.05;
  for (std::int64_t near_epsilon = 0; near_epsilon < v.numel(); near_epsilon += 30'000) v[near_epsilon] = 1e-15;
  const AdamStep alone = step_of(m, v);
  const AdamStep together = step_of(m, v);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  NoiseCorrection(8).apply({alone});
  at::set_num_threads(3);
  NoiseCorrection(8).apply({together});
  at::set_num_threads(threads);
  EXPECT_TRUE(alone.parameter.equal(together.parameter));
}

TEST(NoiseCorrectionTest, DoesNothingForASingleReplicaOrAFirstStep) {
  const at::Tensor m = at::full({4}, 0.01, at::kFloat);
  AdamStep step = step_of(m, at::ones({4}, at::kFloat));
  NoiseCorrection(1).apply({step});
  step.count = 1;
  NoiseCorrection(8).apply({step});
  EXPECT_TRUE(step.parameter.equal(at::zeros({4})));
}

TEST(NoiseCorrectionTest, CorrectsAStepOnce) {
  const at::Tensor m = at::full({4}, 0.01, at::kFloat);
  AdamStep step = step_of(m, at::ones({4}, at::kFloat));
  NoiseCorrection correction(8);
  correction.apply({step});
  const at::Tensor once = step.parameter.clone();
  correction.apply({step});
  EXPECT_TRUE(step.parameter.equal(once));
  ++step.count;
  correction.apply({step});
  EXPECT_FALSE(step.parameter.equal(once));
}

TEST(NoiseCorrectionTest, IsTheSameForOtherTypesAndOrdersInMemory) {
  const at::Tensor m = at::sin(at::arange(60, at::kFloat)).view({3, 4, 5, 1}) * 0.1;
  const at::Tensor v = m.square() + 0.02;
  const AdamStep plain = step_of(m, v);
  NoiseCorrection(8).apply({plain});
  const AdamStep doubles = step_of(m.to(at::kDouble), v.to(at::kDouble), at::kDouble);
  NoiseCorrection(8).apply({doubles});
  EXPECT_TRUE(at::allclose(plain.parameter.to(at::kDouble), doubles.parameter, 6e-3, 1e-9));
  const auto last = at::MemoryFormat::ChannelsLast;
  const AdamStep mixed = step_of(m.contiguous(last), v);  // moments that lie in memory in another way
  NoiseCorrection(8).apply({mixed});
  EXPECT_TRUE(at::allclose(plain.parameter, mixed.parameter, 6e-3, 1e-9));
  // Blocks are of neighbours in memory: here all 60 elements are one.
  const AdamStep moved = step_of(m.contiguous(last), v.contiguous(last));
  NoiseCorrection(8).apply({moved});
  EXPECT_TRUE(at::allclose(plain.parameter, moved.parameter, 6e-3, 1e-9));
}

// With independent noise on every worker, one worker's corrected steps are as long as those of an optimizer that sees
// everyone's mean gradient, up to the correction's own noise.
TEST(NoiseCorrectionTest, StepsAreAsLongAsThoseFromEveryonesMeanGradient) {
  constexpr int kTogether = 8;
  constexpr std::int64_t kSize = 20'000;
  const auto options = torch::optim::AdamWOptions(1e-3).betas({0.9, 0.95}).weight_decay(0);
  at::Tensor alone = at::zeros({kSize}).requires_grad_();
  at::Tensor together = at::zeros({kSize}).requires_grad_();
  torch::optim::AdamW first({alone}, options);
  torch::optim::AdamW second({together}, options);
  Replica replica;
  const at::Tensor signal = at::linspace(-0.3, 0.3, kSize);
  auto generator = at::detail::createCPUGenerator(5);
  NoiseCorrection correction(kTogether);
  for (int step = 0; step < 200; ++step) {
    const at::Tensor noise = at::randn({kTogether, kSize}, generator);
    alone.mutable_grad() = signal + noise[0];
    together.mutable_grad() = signal + noise.mean(0);
    first.step();
    second.step();
    torch::nn::Module holder;
    holder.register_parameter("x", alone);
    correction.apply(replica_of(holder, first).adam_steps({0}));
  }
  // As parameters of all replicas are averaged, what counts is how far they go on average.
  const double ratio = (alone * signal).sum().item<double>() / (together * signal).sum().item<double>();
  EXPECT_NEAR(ratio, 1, 0.03);
}

}  // namespace
}  // namespace dssync
