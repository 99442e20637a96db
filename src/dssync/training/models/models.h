// The networks that dssync trains, by name. Start here to add one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dssync/training/data/dataset.h"
#include "dssync/training/models/model.h"
#include "dssync/training/models/transformer.h"

namespace dssync {

struct ModelOptions {
  std::string name = "cnn";   // one of model_names()
  std::int64_t hidden = 128;  // units of mlp's first layer
  TransformerSize transformer{};
};

// "mlp", "cnn" and "resnet" for images, "transformer" for text, "deepfm" for clicks.
const std::vector<std::string>& model_names();

// Throws InputError, with the known names, for another name, and where the model is not made for such examples.
void check_fit(const std::string& model, const ExampleShape& shape);

// The initial values depend on the seed alone. Throws InputError as check_fit does, for images that are smaller than
// 8 x 8, and for sizes that make no model.
std::shared_ptr<Model> make_model(const ModelOptions& options, std::uint64_t seed, const ExampleShape& shape);

// Of all parameters, trained or not.
std::int64_t parameter_count(const torch::nn::Module& model);

}  // namespace dssync
