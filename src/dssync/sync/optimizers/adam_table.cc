#include "dssync/sync/optimizers/adam_table.h"

#include <ATen/ATen.h>

namespace dssync {

void AdamTable::bind(std::size_t index, AdamStep tensors, at::Tensor count, std::size_t group) {
  if (index >= rows_.size()) rows_.resize(index + 1);
  rows_[index] = {std::move(tensors), std::move(count), group};
}

void AdamTable::set_rates(std::size_t group, double learning_rate, double beta1, double beta2, double epsilon) {
  if (group >= groups_.size()) groups_.resize(group + 1);
  groups_[group].learning_rate = learning_rate;
  groups_[group].beta1 = beta1;
  groups_[group].beta2 = beta2;
  groups_[group].epsilon = epsilon;
}

std::vector<AdamStep> AdamTable::steps(const std::vector<std::size_t>& parameters) const {
  std::vector<AdamStep> result;
  for (const std::size_t index : parameters) {
    if (index >= rows_.size() || !rows_[index].count.defined()) continue;
    const Row& row = rows_[index];
    AdamStep step = groups_.at(row.group);
    step.index = index;
    step.parameter = row.step.parameter;
    step.first_moment = row.step.first_moment;
    step.second_moment = row.step.second_moment;
    step.count = row.count.item<double>();
    result.push_back(std::move(step));
  }
  return result;
}

}  // namespace dssync
