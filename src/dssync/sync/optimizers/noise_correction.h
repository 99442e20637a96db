// Adam divides its steps by the root of the gradient's second moment. What a worker sees there contains the noise of
// its own gradient, mu^2 + sigma^2, where an average of everyone's gradients would have mu^2 + sigma^2 / N: its steps
// are too short. After a step of Adam or AdamW this adds what the step would have been with the noise of everyone's
// mean (docs/convergence.md). Reads the optimizer's moments, changes parameters alone. Not thread-safe.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "dssync/sync/replica.h"

namespace dssync {

struct AdamFigures;

// What the formulas need of a step, with so many replicas; with one, steps are as the optimizer makes them.
AdamFigures figures_of(const AdamStep& step, int replicas);

// The part of a second moment that everyone's mean gradient would have, where the squares of m' add up to `signal` and
// the v' to `seen`: between figures.least and 1, element by element. adam_kernel.cc has the same for floats.
at::Tensor part_of_mean(const at::Tensor& signal, const at::Tensor& seen, const AdamFigures& figures);

// Whether the tensors of a step are floats in the memory of CPUs, in the same order there, so that kernels can walk
// over them.
bool suits_kernel(const AdamStep& step);

class NoiseCorrection {
 public:
  // For so many replicas, whose gradients are independent of each other.
  explicit NoiseCorrection(int replicas) : replicas_(replicas) {}

  // Each step is corrected once: where an optimizer has made none since the last call, nothing is done.
  void apply(const std::vector<AdamStep>& steps);

 private:
  int replicas_;
  std::unordered_map<const void*, double> corrected_;  // the count of each parameter's last corrected step
};

}  // namespace dssync
