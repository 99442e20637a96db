// Makes computing take as long as it would elsewhere: sleeps until a given duration has passed, a third of it in the
// layers of the forward pass and the rest as gradients become ready, so that whatever overlaps a pass has it to overlap
// with. What is really computed counts towards the duration, what is excluded does not. Not thread-safe.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include "dssync/base/units.h"
#include "dssync/collective/timeline.h"

namespace dssync {

class Pace {
 public:
  // Watches the model's gradients as long as it lives; a duration of 0 does nothing at all.
  Pace(const torch::nn::Module& model, Seconds duration);
  ~Pace();
  Pace(const Pace&) = delete;
  Pace& operator=(const Pace&) = delete;

  void begin();
  // So many of the model's layers have been computed.
  void layers_done(std::size_t done, std::size_t all) const;
  // So much of the time since begin() was no computing.
  void exclude(Seconds seconds);
  void forward_done() const;
  void backward_done() const;

 private:
  void gradient_ready();
  void sleep_until(double part) const;  // of the duration

  const Seconds duration_;
  std::vector<std::pair<at::Tensor, unsigned>> hooks_;  // with their parameters
  std::size_t ready_ = 0;                               // gradients in this iteration
  Clock::time_point start_;
};

}  // namespace dssync
