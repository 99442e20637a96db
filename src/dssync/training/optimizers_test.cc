// Steps worked out by hand, and that a restored optimizer goes on to the bit.
#include "dssync/training/optimizers.h"

#include <cmath>
#include <limits>
#include <string>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>

#include "dssync/base/error.h"
#include "dssync/comm/testing.h"
#include "dssync/training/models/models.h"

namespace dssync {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

// f(x) = 3 x, from x = 1.
struct Slope : torch::nn::Module {
  Slope() : x(register_parameter("x", at::ones({1}))) {}
  void step(torch::optim::Optimizer& optimizer) {
    optimizer.zero_grad();
    (3 * x).sum().backward();
    optimizer.step();
  }
  at::Tensor x;
};

TEST(OptimizersTest, SgdHasMomentumAndDecay) {
  Slope slope;
  const auto sgd = make_optimizer({"sgd", 0.1, 0.5, 0.2}, slope);
  slope.step(*sgd);  // gradient 3 + 0.2 * 1 = 3.2, x = 1 - 0.1 * 3.2
  EXPECT_NEAR(slope.x.item<double>(), 0.68, 1e-6);
  slope.step(*sgd);  // gradient 3 + 0.2 * 0.68 = 3.136, momentum 0.5 * 3.2 + 3.136 = 4.736
  EXPECT_NEAR(slope.x.item<double>(), 0.68 - 0.4736, 1e-6);
}

TEST(OptimizersTest, AdamWStepsByItsRateAndDecaysApart) {
  Slope slope;
  const auto adamw = make_optimizer({"adamw", 0.01, 0, 0.5}, slope);
  slope.step(*adamw);  // decay: 1 - 0.01 * 0.5 * 1; step: 0.01 whatever the gradient's size
  EXPECT_NEAR(slope.x.item<double>(), 0.995 - 0.01, 1e-6);
}

// Gradients 3, then 0: by hand, m = 0.3 beta1 / (1 - beta1^2) and v = 9 (1 - beta2) beta2 / (1 - beta2^2).
TEST(OptimizersTest, AdamForgetsByItsBetas) {
  for (const std::string name : {"adam", "adamw"}) {
    Slope slope;
    const auto adam = make_optimizer({name, 0.01, 0, 0, {0.5, 0.75}}, slope);
    slope.step(*adam);
    slope.x.mutable_grad().zero_();
    adam->step();
    const double mean = 3 * 0.5 * 0.5 / 0.75;
    const double square = 9 * 0.25 * 0.75 / (1 - 0.75 * 0.75);
    EXPECT_NEAR(slope.x.item<double>(), 1 - 0.01 - 0.01 * mean / std::sqrt(square), 1e-6) << name;
  }
}

TEST(OptimizersTest, TheLearningRateCanBeSet) {
  Slope slope;
  const auto sgd = make_optimizer({"sgd", 0.1, 0, 0}, slope);
  set_learning_rate(*sgd, 0.01);
  slope.step(*sgd);
  EXPECT_NEAR(slope.x.item<double>(), 0.97, 1e-6);
}

TEST(OptimizersTest, RememberAsManyValuesAsTheySay) {
  for (const OptimizerSettings& settings :
       {OptimizerSettings{"sgd", 0.1, 0.9, 0}, OptimizerSettings{"sgd", 0.1, 0, 0},
        OptimizerSettings{"adam", 0.01, 0, 0}, OptimizerSettings{"adamw", 0.01, 0, 0}}) {
    Slope slope;
    const auto optimizer = make_optimizer(settings, slope);
    slope.step(*optimizer);
    const auto states = replica_of(slope, *optimizer).optimizer_state();
    EXPECT_EQ(static_cast<int>(states.size()), states_per_parameter(settings)) << settings.name << settings.momentum;
  }
}

// One training step of a small model with images that depend on the step.
void train_step(Model& model, torch::optim::Optimizer& optimizer, int step) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(step));
  const at::Tensor images = at::randn({4, 1, 8, 8}, generator);
  const at::Tensor labels = at::randint(0, 10, {4}, generator, at::kLong);
  optimizer.zero_grad();
  torch::nn::functional::cross_entropy(model.forward(images), labels).backward();
  optimizer.step();
}

void expect_same_parameters(const Model& a, const Model& b) {
  const auto first = a.parameters();
  const auto second = b.parameters();
  for (std::size_t index = 0; index < first.size(); ++index) EXPECT_TRUE(at::equal(first[index], second[index]));
}

class RestoredTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RestoredTest, GoesOnToTheBit) {
  const OptimizerSettings settings{GetParam(), 0.05, 0.9, 1e-3};
  const auto model = make_model({.name = "cnn"}, 1, ImageShape{1, 8, 8});
  const auto optimizer = make_optimizer(settings, *model);
  for (int step = 0; step < 5; ++step) train_step(*model, *optimizer, step);

  const auto resumed = make_model({.name = "cnn"}, 2, ImageShape{1, 8, 8});
  {
    const torch::NoGradGuard no_grad;
    const auto from = model->parameters();
    const auto to = resumed->parameters();
    for (std::size_t index = 0; index < to.size(); ++index) to[index].copy_(from[index]);
  }
  const auto restored = make_optimizer(settings, *resumed);
  const auto saved = saved_state(*model, *optimizer);
  restore_state(*resumed, *restored, saved);
  for (int step = 5; step < 10; ++step) {
    train_step(*model, *optimizer, step);
    train_step(*resumed, *restored, step);
  }
  expect_same_parameters(*model, *resumed);
}

TEST_P(RestoredTest, WithoutItsStateItWouldGoElsewhere) {
  const OptimizerSettings settings{GetParam(), 0.05, 0.9, 1e-3};
  const auto model = make_model({.name = "cnn"}, 1, ImageShape{1, 8, 8});
  const auto twin = make_model({.name = "cnn"}, 1, ImageShape{1, 8, 8});
  const auto optimizer = make_optimizer(settings, *model);
  auto forgetful = make_optimizer(settings, *twin);
  for (int step = 0; step < 4; ++step) {
    train_step(*model, *optimizer, step);
    if (step == 2) forgetful = make_optimizer(settings, *twin);
    train_step(*twin, *forgetful, step);
  }
  EXPECT_FALSE(at::equal(model->parameters().front(), twin->parameters().front()));
}

TEST_P(RestoredTest, WhatIsSavedIsACopy) {
  const auto model = make_model({.name = "mlp"}, 1, ImageShape{1, 8, 8});
  const auto optimizer = make_optimizer({GetParam(), 0.05, 0.9, 0}, *model);
  EXPECT_TRUE(saved_state(*model, *optimizer).empty());
  train_step(*model, *optimizer, 0);
  const auto saved = saved_state(*model, *optimizer);
  const at::Tensor before = saved.front().tensors.front().tensor.clone();
  train_step(*model, *optimizer, 1);
  EXPECT_TRUE(at::equal(before, saved.front().tensors.front().tensor));
}

INSTANTIATE_TEST_SUITE_P(Optimizers, RestoredTest, ::testing::Values("sgd", "adam", "adamw"),
                         [](const auto& tested) { return tested.param; });

TEST(OptimizersTest, RefusesTheStateOfAnotherOptimizerOrModel) {
  const auto model = make_model({.name = "mlp"}, 1, ImageShape{1, 8, 8});
  const auto sgd = make_optimizer({"sgd", 0.1, 0.9, 0}, *model);
  train_step(*model, *sgd, 0);
  auto saved = saved_state(*model, *sgd);
  const auto adamw = make_optimizer({"adamw", 0.1, 0.9, 0}, *model);
  EXPECT_THAT(message_of<Error>([&] { restore_state(*model, *adamw, saved); }), HasSubstr("has no \"step\""));
  const auto other = make_model({.name = "mlp"}, 1, ImageShape{1, 9, 9});
  const auto fresh = make_optimizer({"sgd", 0.1, 0.9, 0}, *other);
  EXPECT_THAT(message_of<Error>([&] { restore_state(*other, *fresh, saved); }), HasSubstr("another shape"));
  saved.front().tensors.front().name = "elsewhere";
  EXPECT_THAT(message_of<Error>([&] { restore_state(*model, *sgd, saved); }), HasSubstr("\"elsewhere\""));
}

TEST(OptimizersTest, RefusesNumbersThatMakeNoSense) {
  Slope slope;
  const auto refused = [&slope](OptimizerSettings settings) {
    return message_of<InputError>([&] { make_optimizer(settings, slope); });
  };
  EXPECT_THAT(refused({"lion", 0.1, 0.9, 0}), HasSubstr("optimizer \"lion\": expected one of sgd, adam, adamw"));
  EXPECT_THAT(refused({"sgd", 0, 0.9, 0}), HasSubstr("learning rate 0: expected a number above 0"));
  EXPECT_THAT(refused({"sgd", std::numeric_limits<double>::quiet_NaN(), 0.9, 0}), HasSubstr("learning rate nan"));
  EXPECT_THAT(refused({"sgd", 0.1, 1, 0}), HasSubstr("momentum 1: expected at least 0 and below 1"));
  EXPECT_THAT(refused({"sgd", 0.1, 0.9, -1}), HasSubstr("weight decay -1"));
  EXPECT_THAT(refused({"adam", 0.1, 0.9, 0, {0.9, 1}}), HasSubstr("beta 1: expected at least 0 and below 1"));
}

}  // namespace
}  // namespace dssync
