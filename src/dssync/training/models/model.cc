#include "dssync/training/models/model.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace dssync {

at::Tensor Model::forward(const at::Tensor& inputs, const BeforeLayer& before) const {
  at::Tensor values = inputs;
  for (const Layer& layer : layers_) {
    if (before) before(layer);
    values = layer.compute(values);
  }
  return values;
}

double Model::first_deviation(const std::string& name, const at::Tensor& values) const {
  const double inputs = static_cast<double>(values.numel()) / static_cast<double>(values.size(0));
  return (name == "scores.weight" ? 0.1 : 1) * std::sqrt(2 / inputs);
}

// Norms start as the identity, which is torch's default, and biases at 0.
void Model::initialize(std::uint64_t seed) {
  const torch::NoGradGuard no_grad;
  // Several workers may be threads of one process, so the global generator is nobody's own.
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (const auto& item : named_parameters()) {
    at::Tensor values = item.value();
    if (values.dim() > 1) {
      values.normal_(0, first_deviation(item.key(), values), generator);
    } else if (item.key().ends_with("bias")) {
      values.zero_();
    }
  }
}

}  // namespace dssync
