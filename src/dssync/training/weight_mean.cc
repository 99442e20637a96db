#include "dssync/training/weight_mean.h"

#include <utility>

#include <ATen/ATen.h>

namespace dssync {

void WeightMean::add(const torch::nn::Module& model) {
  const torch::NoGradGuard no_grad;
  ++count_;
  const auto parameters = model.named_parameters();
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    const auto& item = parameters[index];
    if (count_ == 1) {
      values_.push_back({item.key(), item.value().detach().clone()});
    } else {
      values_[index].tensor.lerp_(item.value(), 1.0 / static_cast<double>(count_));
    }
  }
}

void WeightMean::restore(std::vector<NamedTensor> values, std::int64_t count) {
  values_ = std::move(values);
  count_ = count;
}

}  // namespace dssync
