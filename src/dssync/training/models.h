// The networks that dssync trains, for images with one label each. Not thread-safe, as any torch module.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>

namespace dssync {

struct ImageShape {
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
};

class Model : public torch::nn::Module {
 public:
  // From images (float, examples x channels x height x width) to a score for every class.
  virtual at::Tensor forward(const at::Tensor& images) = 0;
};

// "mlp": two hidden layers, the first of them as wide as one likes. "cnn": two convolutions, two dense layers; the
// fastest way to 90 % on Fashion-MNIST. "resnet": three stages of residual blocks with BatchNorm.
const std::vector<std::string>& model_names();

// The initial values depend on the seed alone, not on torch's global generator, which it leaves as it is used by torch.
// Throws InputError, with the known names, for another name, and where the images are smaller than 8 x 8.
// `hidden`: units of mlp's first layer.
inline constexpr std::int64_t kHiddenUnits = 128;
std::shared_ptr<Model> make_model(const std::string& name, std::uint64_t seed, const ImageShape& shape = {},
                                  int classes = 10, std::int64_t hidden = kHiddenUnits);

// Of all parameters, trained or not.
std::int64_t parameter_count(const torch::nn::Module& model);

}  // namespace dssync
