// Stochastic weight averaging: the running mean of one worker's parameters over iterations. As averaging is linear, the
// mean of all workers' means is the mean of the models that consolidating would have found, and needs no communication
// before someone asks for it. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/nn/module.h>

#include "dssync/sync/replica.h"

namespace dssync {

class WeightMean {
 public:
  // The parameters as they are now count as one more iteration.
  void add(const torch::nn::Module& model);

  std::int64_t count() const { return count_; }

  // By parameter; empty before the first add(). The tensors are its own.
  const std::vector<NamedTensor>& values() const { return values_; }

  // Goes on from values that were taken out. Takes the tensors over.
  void restore(std::vector<NamedTensor> values, std::int64_t count);

 private:
  std::vector<NamedTensor> values_;
  std::int64_t count_ = 0;
};

}  // namespace dssync
