#include "dssync/sync/optimizers/inferred_momentum.h"

#include <cmath>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace dssync {
namespace {

constexpr double kRate = 0.01;

// Two workers that were equal, with the same second moments, and what one step of each has made of 100 parameters.
class TwoWorkersTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  TwoWorkersTest() {
    for (AdamStep* step : {&own_, &other_}) {
      step->second_moment = second_;
      step->learning_rate = kRate;
      step->count = 9;
      step->parameter =
          -kRate * (step->first_moment / (1 - std::pow(0.9, 9))) / ((second_ / (1 - std::pow(0.999, 9))).sqrt() + 1e-8);
    }
    layout_.vector = own_.parameter;
    layout_.parts = {{0, 0}};
  }

  static at::Tensor numbers(double phase) {
    return at::sin(at::arange(100, at::TensorOptions(GetParam())) * 1.3 + phase) * 0.1;
  }

  const at::Tensor second_ = numbers(5).square() + 0.02;
  AdamStep own_{.first_moment = numbers(0)};
  AdamStep other_{.first_moment = numbers(1)};
  Flat layout_;
};

TEST_P(TwoWorkersTest, OneStepAfterTheyWereEqualMomentumBecomesTheirMean) {
  const at::Tensor mean = (own_.first_moment + other_.first_moment) / 2;
  const TakeOver::Move move{own_.parameter, (own_.parameter + other_.parameter) / 2};
  const FlatSlice all{0, 0, 100};
  InferredMomentum({layout_}, 1, 1).apply({own_}, all, move, all, 1);
  EXPECT_TRUE(at::allclose(own_.first_moment, mean, 1e-4, 1e-6));
}

TEST_P(TwoWorkersTest, OnlyTheElementsThatMoveLearnSomething) {
  const at::Tensor before = own_.first_moment.clone();
  const at::Tensor mean = (own_.first_moment + other_.first_moment) / 2;
  const at::Tensor after = (own_.parameter + other_.parameter) / 2;
  const FlatSlice all{0, 10, 90};
  const FlatSlice part{0, 20, 50};
  InferredMomentum({layout_}, 1, 1)
      .apply({own_}, all, {own_.parameter.narrow(0, 10, 80), after.narrow(0, 10, 80)}, part, 1);
  EXPECT_TRUE(own_.first_moment.narrow(0, 0, 20).equal(before.narrow(0, 0, 20)));
  EXPECT_TRUE(at::allclose(own_.first_moment.narrow(0, 20, 30), mean.narrow(0, 20, 30), 1e-4, 1e-6));
  EXPECT_TRUE(own_.first_moment.narrow(0, 50, 50).equal(before.narrow(0, 50, 50)));
}

TEST_P(TwoWorkersTest, NoMoveIsTakenForMoreThanTheRootOfTheSecondMoment) {
  const at::Tensor before = own_.first_moment.clone();
  const FlatSlice all{0, 0, 100};
  InferredMomentum({layout_}, 1, 1).apply({own_}, all, {own_.parameter, own_.parameter + 1}, all, 1);
  const double bias1 = 1 - std::pow(0.9, 9);
  const at::Tensor limit = bias1 * (second_ / (1 - std::pow(0.999, 9))).sqrt();
  EXPECT_TRUE(at::allclose(before - own_.first_moment, limit, 1e-4, 1e-6));
}

TEST_P(TwoWorkersTest, NothingIsLearnedFromStepsOfNoLength) {
  const at::Tensor before = own_.first_moment.clone();
  own_.learning_rate = 0;
  const FlatSlice all{0, 0, 100};
  InferredMomentum({layout_}, 1, 1).apply({own_}, all, {own_.parameter, other_.parameter}, all, 1);
  EXPECT_TRUE(own_.first_moment.equal(before));
}

INSTANTIATE_TEST_SUITE_P(Types, TwoWorkersTest, ::testing::Values(at::kFloat, at::kDouble));

// The noise of every step is independent. The share is the slope of the line through (sum of the steps, momentum).
TEST(InferredMomentumTest, TheShareIsThatOfARegression) {
  EXPECT_DOUBLE_EQ(share_of_momentum(1, 0.9), 1);
  auto generator = at::detail::createCPUGenerator(7);
  for (const std::int64_t steps : {2, 5, 13}) {
    at::Tensor momentum = at::zeros({200'000}, at::kDouble);
    at::Tensor sum = at::zeros_like(momentum);
    for (std::int64_t step = 0; step < steps; ++step) {
      momentum = 0.9 * momentum + 0.1 * at::randn({200'000}, generator, at::kDouble);
      sum += momentum;
    }
    const double slope = (sum * momentum).sum().item<double>() / sum.square().sum().item<double>();
    EXPECT_NEAR(share_of_momentum(steps, 0.9), slope, 0.02 * slope) << steps;
  }
}

}  // namespace
}  // namespace dssync
