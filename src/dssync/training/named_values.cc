#include "dssync/training/named_values.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "dssync/base/error.h"

namespace dssync {

std::vector<NamedTensor> named_parameters_of(const torch::nn::Module& model) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : model.named_parameters()) tensors.push_back({item.key(), item.value()});
  return tensors;
}

std::vector<NamedTensor> named_buffers_of(const torch::nn::Module& model) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : model.named_buffers()) tensors.push_back({item.key(), item.value()});
  return tensors;
}

std::vector<NamedTensor> copies_of(const std::vector<NamedTensor>& tensors) {
  std::vector<NamedTensor> copies;
  for (const auto& [name, tensor] : tensors) copies.push_back({name, tensor.detach().clone()});
  return copies;
}

void copy_into(const std::vector<NamedTensor>& targets, const std::vector<NamedTensor>& values, const char* what) {
  const torch::NoGradGuard no_grad;
  if (targets.size() != values.size()) {
    throw Error(fmt::format("the checkpoint has {} {}, the model {}", values.size(), what, targets.size()));
  }
  for (std::size_t index = 0; index < targets.size(); ++index) {
    const auto& [name, value] = values[index];
    at::Tensor target = targets[index].tensor;
    if (name != targets[index].name || value.sizes() != target.sizes()) {
      throw Error(fmt::format("the checkpoint has {} of another shape than the model's {}", name, targets[index].name));
    }
    target.copy_(value);
  }
}

}  // namespace dssync
