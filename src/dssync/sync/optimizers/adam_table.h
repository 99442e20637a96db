// What a program that owns an Adam optimizer in another language tells of it: its tensors once, its rates before every
// correction. Not thread-safe.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "dssync/sync/replica.h"

namespace dssync {

class AdamTable {
 public:
  // Steps of parameter `index` are made with these moments, and with the rates of a group. `count` is a tensor with the
  // number of steps so far.
  void bind(std::size_t index, AdamStep tensors, at::Tensor count, std::size_t group);
  void clear() { rows_.clear(); }

  void set_rates(std::size_t group, double learning_rate, double beta1, double beta2, double epsilon);

  // As Replica::adam_steps. Parameters that are not bound are left out.
  std::vector<AdamStep> steps(const std::vector<std::size_t>& parameters) const;

 private:
  struct Row {
    AdamStep step{};
    at::Tensor count{};  // undefined: not bound
    std::size_t group = 0;
  };
  std::vector<Row> rows_;  // by parameter
  std::vector<AdamStep> groups_;
};

}  // namespace dssync
