// How much of a worker's gradient is noise: the variance of its elements from step to step, on a sample of them. For
// clipping, and to tell how much shorter steps get where an optimizer divides by what it sees. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "dssync/sync/replica.h"

namespace dssync {

class GradientNoise {
 public:
  // Of the gradients of these parameters; `replicas`: so many have gradients that are independent of each other.
  GradientNoise(const std::vector<NamedTensor>& parameters, int replicas);

  // One step's gradients as they are now. Parameters without one are left out.
  void add();

  // E|g|^2 of this worker's gradient over that of everyone's mean: 1 without noise, up to the number of replicas. 1
  // while there are fewer than two gradients.
  double ratio() const;

  // What it remembers, to go on elsewhere: means and squares, and how many gradients each parameter has had.
  struct Memory {
    at::Tensor values;  // float, 2 x elements
    at::Tensor counts;  // int64
  };
  Memory memory() const;
  // Of other parameters: left out.
  void restore(const Memory& memory);

 private:
  struct Sampled {
    at::Tensor parameter;
    std::int64_t stride = 1;  // every so many elements are looked at
    std::int64_t count = 0;
    std::size_t first = 0;  // in means_ and squares_
    std::int64_t seen = 0;  // gradients so far
  };

  void add(Sampled& sampled, const float* gradient, std::int64_t stride);
  void sum_up();

  int replicas_;
  std::vector<Sampled> sampled_;
  std::vector<float> means_;  // of elements, over the last steps
  std::vector<float> squares_;
  double noise_ = 0;   // sum of the elements' variances, of all elements
  double square_ = 0;  // E|g|^2
};

}  // namespace dssync
