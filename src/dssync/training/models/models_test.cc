// Sizes worked out by hand, and what the initial values depend on.
#include "dssync/training/models/models.h"

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

// Shapes that differ from the usual ones, and inputs for them.
const ImageShape kImage{3, 20, 13, 7};
const TextShape kWindow{50, 9};

bool is_for_images(const std::string& name) { return name != "transformer" && name != "deepfm"; }

std::shared_ptr<Model> usual(const std::string& name, std::uint64_t seed = 1) {
  ExampleShape shape = ImageShape();
  if (name == "transformer") shape = TextShape();
  if (name == "deepfm") shape = ClickShape();
  return make_model({.name = name}, seed, shape);
}

at::Tensor values_of(const torch::nn::Module& model) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& values : model.parameters()) parts.push_back(values.detach().flatten());
  return at::cat(parts);
}

TEST(ModelsTest, HaveTheParametersOfTheirLayers) {
  EXPECT_EQ(parameter_count(*usual("mlp")), (784 * 128 + 128) + (128 * 64 + 64) + (64 * 10 + 10));
  EXPECT_EQ(parameter_count(*usual("cnn")),
            (25 * 16 + 16) + (9 * 16 * 32 + 32) + (32 * 7 * 7 * 64 + 64) + (64 * 10 + 10));
  const int narrow = 4 * 9 * 16 * 16 + 4 * 2 * 16;
  const int middle = 9 * 16 * 32 + 3 * 9 * 32 * 32 + 16 * 32 + 4 * 2 * 32;
  const int wide = 9 * 32 * 64 + 3 * 9 * 64 * 64 + 32 * 64 + 4 * 2 * 64;
  EXPECT_EQ(parameter_count(*usual("resnet")), (9 * 16 + 2 * 16) + narrow + middle + wide + (64 * 10 + 10));
}

TEST(ModelsTest, ATransformerHasTheParametersOfItsLayers) {
  const int norm = 2 * 64;
  const int attention = (64 * 192 + 192) + (64 * 64 + 64);
  const int dense = (64 * 256 + 256) + (256 * 64 + 64);
  EXPECT_EQ(parameter_count(*usual("transformer")),
            128 * 64 + 64 * 64 + 2 * (2 * norm + attention + dense) + norm + (64 * 128 + 128));
  const ModelOptions larger{.name = "transformer", .transformer = {.layers = 3, .width = 8, .heads = 2}};
  EXPECT_EQ(
      parameter_count(*make_model(larger, 1, kWindow)),
      50 * 8 + 9 * 8 + 3 * (4 * 8 + (8 * 24 + 24) + (8 * 8 + 8) + (8 * 32 + 32) + (32 * 8 + 8)) + 16 + (8 * 50 + 50));
}

TEST(ModelsTest, GiveAScoreForEveryClass) {
  for (const std::string& name : model_names()) {
    if (!is_for_images(name)) continue;
    const auto model = make_model({.name = name}, 1, kImage);
    EXPECT_EQ(model->forward(at::randn({4, 3, 20, 13})).sizes(), at::IntArrayRef({4, 7})) << name;
  }
}

TEST(ModelsTest, ATransformerGivesScoresForEveryNextSymbol) {
  const auto model = make_model({.name = "transformer"}, 1, kWindow);
  EXPECT_EQ(model->forward(at::randint(50, {4, 9}, at::kLong)).sizes(), at::IntArrayRef({4, 9, 50}));
}

// What comes after a symbol must not help to tell it.
TEST(ModelsTest, ATransformerDoesNotLookAhead) {
  const auto model = make_model({.name = "transformer"}, 1, kWindow);
  const at::Tensor window = at::arange(9, at::kLong).unsqueeze(0);
  at::Tensor changed = window.clone();
  changed[0][5] = 40;
  const at::Tensor scores = model->forward(window);
  const at::Tensor others = model->forward(changed);
  EXPECT_TRUE(at::allclose(scores.slice(1, 0, 5), others.slice(1, 0, 5)));
  for (const int position : {5, 6, 8}) EXPECT_FALSE(at::allclose(scores[0][position], others[0][position])) << position;
}

// Two fields with the rows 0 and 2: their weights, the product of their vectors, and what the network says of both.
TEST(ModelsTest, DeepFmAddsWeightsPairsAndANetwork) {
  const auto model = make_model({.name = "deepfm"}, 1, ClickShape{2, 4});
  EXPECT_EQ(parameter_count(*model), 4 * 5 + (2 * 4 * 32 + 32) + (32 + 1));
  const at::Tensor rows = at::tensor({0, 2, 1, 3}, at::kLong).view({2, 2});
  const at::Tensor scores = model->forward(rows);
  ASSERT_EQ(scores.sizes(), at::IntArrayRef({2}));
  const auto parameters = model->named_parameters();
  const at::Tensor table = parameters["rows.weight"];
  const at::Tensor vectors = table.slice(1, 1);
  const at::Tensor hidden = at::relu(at::linear(at::cat({vectors[0], vectors[2]}), parameters["factors.hidden.weight"],
                                                parameters["factors.hidden.bias"]));
  const at::Tensor deep = at::linear(hidden, parameters["factors.deep.weight"], parameters["factors.deep.bias"]);
  const at::Tensor expected = table[0][0] + table[2][0] + vectors[0].dot(vectors[2]) + deep.squeeze();
  EXPECT_NEAR(scores[0].item<double>(), expected.item<double>(), 1e-6);
}

TEST(ModelsTest, AHeadHasItsShareOfTheWidth) {
  EXPECT_THAT(message_of<InputError>(
                  [] { make_model({.name = "transformer", .transformer = {.width = 10, .heads = 4}}, 1, kWindow); }),
              HasSubstr("width 10 and 4 heads"));
}

TEST(ModelsTest, AreMadeForTheirData) {
  EXPECT_THAT(message_of<InputError>([] { make_model({.name = "cnn"}, 1, kWindow); }),
              HasSubstr("model cnn is made for images, and the data is text"));
  EXPECT_THAT(message_of<InputError>([] { make_model({.name = "transformer"}, 1, kImage); }),
              HasSubstr("model transformer is made for text, and the data is images"));
}

// Whoever waits for parameters before a layer can rely on this.
TEST(ModelsTest, EveryParameterBelongsToExactlyOneLayer) {
  for (const std::string& name : model_names()) {
    const auto model = usual(name);
    std::int64_t in_layers = 0;
    for (const Layer& layer : model->layers()) in_layers += parameter_count(*layer.module);
    EXPECT_EQ(in_layers, parameter_count(*model)) << name;
  }
}

TEST(ModelsTest, StartFromTheSeedAlone) {
  for (const std::string& name : model_names()) {
    torch::manual_seed(1);
    const at::Tensor first = values_of(*usual(name, 5));
    torch::manual_seed(2);
    EXPECT_TRUE(at::equal(first, values_of(*usual(name, 5)))) << name;
    EXPECT_FALSE(at::equal(first, values_of(*usual(name, 6)))) << name;
  }
}

// The loss of guessing among ten classes is log 10 = 2.303.
TEST(ModelsTest, StartNearGuessing) {
  for (const std::string& name : model_names()) {
    if (!is_for_images(name)) continue;
    const auto model = usual(name, 3);
    const at::Tensor images = at::randn({256, 1, 28, 28}, at::make_generator<at::CPUGeneratorImpl>(4));
    const at::Tensor scores = model->forward(images);
    const double loss = -scores.log_softmax(1).mean().item<double>();
    EXPECT_GT(loss, 2.29) << name;
    EXPECT_LT(loss, 2.4) << name;
  }
}

// The loss of guessing among 128 symbols is log 128 = 4.85.
TEST(ModelsTest, ATransformerStartsNearGuessing) {
  const at::Tensor windows = at::arange(64 * 64, at::kLong).remainder(101).view({64, 64});
  const at::Tensor scores = usual("transformer", 3)->forward(windows);
  EXPECT_NEAR(-scores.log_softmax(-1).mean().item<double>(), 4.85, 0.3);
}

TEST(ModelsTest, OnlyTheResidualNetworkHasBuffers) {
  EXPECT_TRUE(usual("mlp")->buffers().empty());
  EXPECT_TRUE(usual("cnn")->buffers().empty());
  EXPECT_TRUE(usual("transformer")->buffers().empty());
  EXPECT_EQ(usual("resnet")->buffers().size(), 13u * 3);  // mean, variance, counter of each BatchNorm
}

TEST(ModelsTest, AnUnknownNameListsTheKnownOnes) {
  EXPECT_THAT(message_of<InputError>([] { usual("vgg"); }),
              HasSubstr("model \"vgg\": expected one of mlp, cnn, resnet, transformer, deepfm"));
  EXPECT_THAT(message_of<InputError>([] {
                make_model({.name = "cnn"}, 1, ImageShape{1, 28, 7});
              }),
              HasSubstr("images of 28 x 7"));
}

}  // namespace
}  // namespace dssync
