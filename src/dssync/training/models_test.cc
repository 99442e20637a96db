// Sizes worked out by hand, and what the initial values depend on.
#include "dssync/training/models.h"

#include <string>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "dssync/base/error.h"
#include "dssync/comm/testing.h"

namespace dssync {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

at::Tensor values_of(const torch::nn::Module& model) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& values : model.parameters()) parts.push_back(values.detach().flatten());
  return at::cat(parts);
}

TEST(ModelsTest, HaveTheParametersOfTheirLayers) {
  EXPECT_EQ(parameter_count(*make_model("mlp", 1)), (784 * 128 + 128) + (128 * 64 + 64) + (64 * 10 + 10));
  EXPECT_EQ(parameter_count(*make_model("cnn", 1)),
            (25 * 16 + 16) + (9 * 16 * 32 + 32) + (32 * 7 * 7 * 64 + 64) + (64 * 10 + 10));
  const int narrow = 4 * 9 * 16 * 16 + 4 * 2 * 16;
  const int middle = 9 * 16 * 32 + 3 * 9 * 32 * 32 + 16 * 32 + 4 * 2 * 32;
  const int wide = 9 * 32 * 64 + 3 * 9 * 64 * 64 + 32 * 64 + 4 * 2 * 64;
  EXPECT_EQ(parameter_count(*make_model("resnet", 1)), (9 * 16 + 2 * 16) + narrow + middle + wide + (64 * 10 + 10));
}

TEST(ModelsTest, GiveAScoreForEveryClass) {
  for (const std::string& name : model_names()) {
    const auto model = make_model(name, 1, {3, 20, 13}, 7);
    EXPECT_EQ(model->forward(at::randn({4, 3, 20, 13})).sizes(), at::IntArrayRef({4, 7})) << name;
  }
}

TEST(ModelsTest, StartFromTheSeedAlone) {
  for (const std::string& name : model_names()) {
    torch::manual_seed(1);
    const at::Tensor first = values_of(*make_model(name, 5));
    torch::manual_seed(2);
    EXPECT_TRUE(at::equal(first, values_of(*make_model(name, 5)))) << name;
    EXPECT_FALSE(at::equal(first, values_of(*make_model(name, 6)))) << name;
  }
}

// The loss of guessing among ten classes is log 10 = 2.303.
TEST(ModelsTest, StartNearGuessing) {
  for (const std::string& name : model_names()) {
    const auto model = make_model(name, 3);
    const at::Tensor images = at::randn({256, 1, 28, 28}, at::make_generator<at::CPUGeneratorImpl>(4));
    const at::Tensor scores = model->forward(images);
    const double loss = -scores.log_softmax(1).mean().item<double>();
    EXPECT_GT(loss, 2.29) << name;
    EXPECT_LT(loss, 2.4) << name;
  }
}

TEST(ModelsTest, OnlyTheResidualNetworkHasBuffers) {
  EXPECT_TRUE(make_model("mlp", 1)->buffers().empty());
  EXPECT_TRUE(make_model("cnn", 1)->buffers().empty());
  EXPECT_EQ(make_model("resnet", 1)->buffers().size(), 13u * 3);  // mean, variance, counter of each BatchNorm
}

TEST(ModelsTest, AnUnknownNameListsTheKnownOnes) {
  EXPECT_THAT(message_of<InputError>([] { make_model("vgg", 1); }),
              HasSubstr("model \"vgg\": expected one of mlp, cnn, resnet"));
  EXPECT_THAT(message_of<InputError>([] { make_model("cnn", 1, {1, 28, 7}); }), HasSubstr("images of 28 x 7"));
}

}  // namespace
}  // namespace dssync
