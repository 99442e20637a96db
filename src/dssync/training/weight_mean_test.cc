// Means of a few numbers.
#include "dssync/training/weight_mean.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/functional.h>
#include <torch/nn/modules/linear.h>

namespace dssync {
namespace {

void fill(torch::nn::Linear& layer, double value) {
  const torch::NoGradGuard no_grad;
  for (at::Tensor& parameter : layer->parameters()) parameter.fill_(value);
}

TEST(WeightMeanTest, IsTheMeanOfAllThatWereAdded) {
  torch::nn::Linear layer(2, 1);
  WeightMean mean;
  EXPECT_TRUE(mean.values().empty());
  for (const double value : {1.0, 2.0, 6.0}) {
    fill(layer, value);
    mean.add(*layer);
  }
  EXPECT_EQ(mean.count(), 3);
  ASSERT_EQ(mean.values().size(), 2u);
  EXPECT_EQ(mean.values()[0].name, "weight");
  for (const NamedTensor& item : mean.values()) {
    EXPECT_TRUE(at::allclose(item.tensor, at::full_like(item.tensor, 3))) << item.name;
  }
  fill(layer, 9);
  EXPECT_NEAR(mean.values()[1].tensor.item<double>(), 3, 1e-6);  // its own tensors
}

TEST(WeightMeanTest, GoesOnWhereItWas) {
  torch::nn::Linear layer(2, 1);
  WeightMean mean;
  for (const double value : {1.0, 3.0}) {
    fill(layer, value);
    mean.add(*layer);
  }
  WeightMean other;
  other.restore(mean.values(), mean.count());
  fill(layer, 8);
  other.add(*layer);
  EXPECT_EQ(other.count(), 3);
  EXPECT_NEAR(other.values()[1].tensor.item<double>(), 4, 1e-6);
}

}  // namespace
}  // namespace dssync
