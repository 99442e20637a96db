#include "dssync/sync/optimizers/gradient_noise.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace dssync {
namespace {

// Gradients with a fixed signal and independent noise, on two parameters of different sizes.
class NoisyGradients {
 public:
  NoisyGradients(double signal, double noise) : signal_(signal), noise_(noise) {
    for (const std::int64_t size : {30'000, 7}) {
      parameters_.push_back({"p" + std::to_string(size), at::zeros({size}).requires_grad_()});
    }
  }

  const std::vector<NamedTensor>& parameters() const { return parameters_; }

  void next() {
    for (NamedTensor& parameter : parameters_) {
      at::Tensor& gradient = parameter.tensor.mutable_grad();
      gradient = signal_ + noise_ * at::randn({parameter.tensor.numel()}, generator_);
    }
  }

 private:
  double signal_;
  double noise_;
  at::Generator generator_ = at::detail::createCPUGenerator(3);
  std::vector<NamedTensor> parameters_;
};

TEST(GradientNoiseTest, TellsHowMuchLargerOneGradientIsThanEveryonesMean) {
  NoisyGradients gradients(0.1, 0.2);
  GradientNoise noise(gradients.parameters(), 8);
  for (int step = 0; step < 40; ++step) {
    gradients.next();
    noise.add();
  }
  EXPECT_NEAR(noise.ratio(), (0.01 + 0.04) / (0.01 + 0.005), 0.2);
}

TEST(GradientNoiseTest, ForgetsAnOverflow) {
  NoisyGradients gradients(0.1, 0.2);
  GradientNoise noise(gradients.parameters(), 8);
  for (int step = 0; step < 40; ++step) {
    gradients.next();
    if (step == 5) gradients.parameters().front().tensor.mutable_grad().fill_(INFINITY);
    noise.add();
  }
  EXPECT_NEAR(noise.ratio(), (0.01 + 0.04) / (0.01 + 0.005), 0.2);
}

TEST(GradientNoiseTest, KnowsOfNoNoiseAtFirst) {
  NoisyGradients gradients(0.1, 0.2);
  GradientNoise noise(gradients.parameters(), 8);
  EXPECT_EQ(noise.ratio(), 1);
  gradients.next();
  noise.add();
  EXPECT_EQ(noise.ratio(), 1);
}

TEST(GradientNoiseTest, IsRightAfterTwoGradientsAlready) {
  NoisyGradients gradients(0.0, 1.0);
  GradientNoise noise(gradients.parameters(), 4);
  gradients.next();
  noise.add();
  gradients.next();
  noise.add();
  EXPECT_NEAR(noise.ratio(), 4, 0.4);
}

TEST(GradientNoiseTest, FindsNoneWhereGradientsDoNotChange) {
  NoisyGradients gradients(0.3, 0.0);
  GradientNoise noise(gradients.parameters(), 8);
  for (int step = 0; step < 5; ++step) {
    gradients.next();
    noise.add();
  }
  EXPECT_NEAR(noise.ratio(), 1, 1e-4);
}

TEST(GradientNoiseTest, GoesOnWithWhatItRemembers) {
  NoisyGradients gradients(0.1, 0.2);
  GradientNoise noise(gradients.parameters(), 8);
  GradientNoise resumed(gradients.parameters(), 8);
  for (int step = 0; step < 6; ++step) {
    if (step == 3) resumed.restore(noise.memory());
    gradients.next();
    noise.add();
    if (step >= 3) resumed.add();
  }
  EXPECT_EQ(resumed.ratio(), noise.ratio());
  EXPECT_GT(noise.ratio(), 1);
  GradientNoise fewer({gradients.parameters().front()}, 8);
  fewer.restore(noise.memory());
  EXPECT_EQ(fewer.ratio(), 1);
}

TEST(GradientNoiseTest, LeavesOutParametersWithoutAGradient) {
  NoisyGradients gradients(0.1, 0.2);
  GradientNoise noise(gradients.parameters(), 8);
  noise.add();
  EXPECT_EQ(noise.ratio(), 1);
}

}  // namespace
}  // namespace dssync
